#include "headlight/models/gradcheck.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace headlight {
namespace {

TEST(GradCheck, AllGreen) {
  const std::vector<GradCheckRow> rows = RunGradCheck({});
  EXPECT_GT(rows.size(), 200u);
  double worst = 0;
  for (const GradCheckRow& row : rows) {
    EXPECT_TRUE(row.ok) << row.layer << ", " << row.tensor << ": " << row.max_error;
    EXPECT_GT(row.checked, 0);
    worst = std::max(worst, row.max_error);
  }
  RecordProperty("worst_error", std::to_string(worst));
}

// Swaps rows and columns of a square weight's gradient, as a product with the wrong operand
// transposed would.
void TransposeInPlace(Tensor gradient) {
  const View<double> matrix = gradient.view<double>();
  for (int64_t i = 0; i < matrix.size(0); ++i) {
    for (int64_t j = 0; j < i; ++j) std::swap(matrix(i, j), matrix(j, i));
  }
}

TEST(GradCheck, CatchesATransposedWeightGradient) {
  int faults = 0;
  for (GradCheckCase& check : AllGradCheckCases(1)) {
    if (check.layer != "block: post" && check.layer != "text_classifier: defaults") continue;
    for (Parameter* parameter : check.parameters) {
      const Shape& shape = parameter->value.shape();
      if (shape.rank() != 2 || shape[0] != shape[1]) continue;
      GradCheckCase faulty = check;
      faulty.parameters = {check.parameters.front(), parameter};
      faulty.inputs.clear();
      faulty.backward = [&] {
        check.backward();
        TransposeInPlace(parameter->gradient);
      };
      // The other parameter stays right: the finding names the one at fault.
      const std::vector<GradCheckRow> rows = CheckGradients(faulty, {});
      ASSERT_EQ(rows.size(), 2u);
      EXPECT_FALSE(rows[1].ok) << rows[1].layer << ", " << rows[1].tensor;
      EXPECT_EQ(rows[1].tensor, parameter->name);
      EXPECT_EQ(rows[0].ok, parameter != check.parameters.front());
      ++faults;
    }
  }
  EXPECT_EQ(faults, 4 + 2 * 4);  // query, key, value, output of each block
}

TEST(GradCheck, CatchesAForgottenResidualAndAScale) {
  for (GradCheckCase& check : AllGradCheckCases(2)) {
    if (check.layer != "block: pre") continue;
    GradCheckCase faulty = check;
    faulty.backward = [&] {
      check.backward();
      double* gradient = check.inputs[0].gradient.data<double>();
      for (int64_t i = 0; i < check.inputs[0].gradient.elements(); ++i) gradient[i] *= 1.001;
    };
    const std::vector<GradCheckRow> rows = CheckGradients(faulty, {});
    EXPECT_FALSE(rows.back().ok);
    EXPECT_EQ(rows.back().tensor, "x");
    return;
  }
  FAIL() << "no case named block: pre";
}

// A NaN in a gradient must not pass as a small error.
TEST(GradCheck, NanIsAnError) {
  GradCheckCase check = AllGradCheckCases(1).front();
  GradCheckCase faulty = check;
  faulty.backward = [&] {
    check.backward();
    Tensor gradient = check.inputs[0].gradient;
    std::fill_n(gradient.data<double>(), gradient.elements(),
                std::numeric_limits<double>::quiet_NaN());
  };
  EXPECT_FALSE(CheckGradients(faulty, {}).back().ok);
}

}  // namespace
}  // namespace headlight
