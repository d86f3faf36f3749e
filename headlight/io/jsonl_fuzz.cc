// Any bytes as JSON lines: records or Error, nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "headlight/base/error.h"
#include "headlight/io/jsonl.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(data, data + size);
  headlight::JsonlReader reader(bytes, "fuzz");
  headlight::JsonlRecord record;
  int64_t line = 0;
  try {
    while (reader.Next(&record)) {
      if (record.line <= line) std::abort();
      line = record.line;
      for (const auto& [name, value] : record.fields) {
        if (record.Find(name) == nullptr) std::abort();
      }
    }
  } catch (const headlight::Error&) {
  }
  return 0;
}
