// Any bytes: an Error of kind kInput, or an array that is written and read back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "headlight/base/error.h"
#include "headlight/io/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  headlight::Tensor tensor;
  try {
    tensor = headlight::ParseNpy(bytes, "fuzz", headlight::MemoryTag::kOther);
  } catch (const headlight::Error& error) {
    if (error.kind() != headlight::ErrorKind::kInput) std::abort();
    return 0;
  }
  const std::string written = headlight::SerializeNpy(tensor);
  const headlight::Tensor again =
      headlight::ParseNpy(written, "written", headlight::MemoryTag::kOther);
  if (headlight::SerializeNpy(again) != written) std::abort();
  return 0;
}
