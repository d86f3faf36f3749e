// Reading the golden files beside this header, and comparing tensors with them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "headlight/io/safetensors.h"
#include "headlight/tensor/tensor.h"

namespace headlight {

struct Golden {
  std::map<std::string, Tensor> tensors;
  nlohmann::json settings;

  // Fails loudly (std::out_of_range) for a name that the file does not hold.
  const Tensor& At(const std::string& name) const { return tensors.at(name); }
};

inline Golden ReadGolden(const std::string& file) {
  Safetensors contents =
      ReadSafetensors(std::string(HEADLIGHT_SOURCE_DIR "/tests/goldens/") + file);
  return {std::move(contents.tensors), nlohmann::json::parse(contents.metadata.at("settings"))};
}

// Every element within `tolerance` of the expected one. Shapes must be equal.
inline void ExpectNear(const Tensor& actual, const Tensor& expected, double tolerance,
                       const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  const Tensor a = actual.CastTo(DType::kF64, MemoryTag::kWorkspace);
  const Tensor e = expected.CastTo(DType::kF64, MemoryTag::kWorkspace);
  double largest = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double difference = std::abs(a.data<double>()[i] - e.data<double>()[i]);
    if (!(difference <= largest)) largest = difference;  // NaN too
    if (std::isnan(largest)) break;
  }
  EXPECT_LE(largest, tolerance) << what << ": largest difference " << largest << ", "
                                << largest / tolerance << " of the tolerance";
}

}  // namespace headlight
