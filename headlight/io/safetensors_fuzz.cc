// Any bytes: an Error of kind kInput, or contents that are written and read back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "headlight/base/error.h"
#include "headlight/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  headlight::Safetensors contents;
  try {
    contents = headlight::ParseSafetensors(bytes, "fuzz");
  } catch (const headlight::Error& error) {
    if (error.kind() != headlight::ErrorKind::kInput) std::abort();
    return 0;
  }
  const std::string written = headlight::SerializeSafetensors(contents);
  const headlight::Safetensors again = headlight::ParseSafetensors(written, "written");
  if (headlight::SerializeSafetensors(again) != written) std::abort();
  return 0;
}
