// Any bytes as a list of shapes: no crash, and a shape that was read is read again from its words.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "headlight/base/error.h"
#include "headlight/kernels/timing/attention_shape.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<headlight::AttentionShape> shapes;
  try {
    shapes = headlight::ParseAttentionShapes(std::string(data, data + size), "fuzz");
  } catch (const headlight::Error&) {
    return 0;
  }
  for (const headlight::AttentionShape& shape : shapes) {
    if (headlight::ParseAttentionShape(shape.ToString()) != shape) std::abort();
  }
  return 0;
}
