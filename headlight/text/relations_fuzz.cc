// Any bytes are either refused with Error or come back the same after writing and reading.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/base/error.h"
#include "headlight/text/relations.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<headlight::RelationsExample> examples;
  try {
    examples = headlight::ParseRelations(bytes, "fuzz");
  } catch (const headlight::Error&) {
    return 0;
  }
  const std::string lines = headlight::FormatRelations(examples);
  if (headlight::ParseRelations(lines, "again") != examples) std::abort();
  return 0;
}
