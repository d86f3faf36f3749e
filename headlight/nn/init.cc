#include "headlight/nn/init.h"

#include <cmath>

#include "headlight/base/error.h"
#include "headlight/base/random.h"

namespace headlight {
namespace {

template <typename Draw>
void Fill(Tensor& value, const Draw& draw) {
  DispatchFloat(value.dtype(), [&]<typename T>() {
    T* data = value.data<T>();
    for (int64_t i = 0; i < value.elements(); ++i) data[i] = static_cast<T>(draw());
  });
}

}  // namespace

uint64_t StreamOfName(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3u;
  }
  return hash;
}

void InitXavierUniform(Parameter& parameter, uint64_t seed) {
  const Shape& shape = parameter.value.shape();
  if (shape.rank() != 2) {
    throw Error(ErrorKind::kShape, "xavier: {} must be a matrix, found {}", parameter.name,
                shape.ToString());
  }
  const double bound = std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1]));
  RandomStream random(seed, StreamOfName(parameter.name));
  Fill(parameter.value, [&] { return bound * (2 * random.Uniform() - 1); });
}

void InitNormal(Parameter& parameter, double standard_deviation, uint64_t seed) {
  RandomStream random(seed, StreamOfName(parameter.name));
  Fill(parameter.value, [&] { return standard_deviation * random.Normal(); });
}

void InitConstant(Parameter& parameter, double value) {
  Fill(parameter.value, [&] { return value; });
}

}  // namespace headlight
