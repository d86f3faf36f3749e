#include "headlight/models/gradcheck.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "headlight/base/random.h"
#include "headlight/nn/init.h"

namespace headlight {
namespace {

struct Comparison {
  double analytic = 0;
  double numeric = 0;
};

double Numeric(const GradCheckCase& check, double* value, double step) {
  const double before = *value;
  *value = before + step;
  const double high = check.loss();
  *value = before - step;
  const double low = check.loss();
  *value = before;
  return (high - low) / (2 * step);
}

// NaN counts as the largest error.
double ErrorOf(const Comparison& comparison, double scale) {
  const double error = std::abs(comparison.analytic - comparison.numeric) / scale;
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

// All indices of a small tensor, else `count` drawn ones.
std::vector<int64_t> DrawIndices(int64_t elements, int64_t count, RandomStream& random) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < std::min(elements, count); ++i) {
    const auto drawn = static_cast<int64_t>(random.Below(static_cast<uint64_t>(elements)));
    indices.push_back(elements <= count ? i : drawn);
  }
  return indices;
}

GradCheckRow CheckTensor(const GradCheckCase& check, const GradCheckInput& target,
                         const GradCheckOptions& options) {
  GradCheckRow row{check.layer, target.name, 0, 0, kGradCheckTolerance, true};
  Tensor value = target.value;
  double* values = value.data<double>();
  const double* analytic = target.gradient.data<double>();
  const int64_t elements = value.elements();
  double scale = kGradCheckFloor;
  for (int64_t i = 0; i < elements; ++i) {
    if (std::isfinite(analytic[i])) scale = std::max(scale, std::abs(analytic[i]));
  }
  RandomStream random(options.seed, StreamOfName(check.layer + target.name));
  for (const int64_t index : DrawIndices(elements, options.values_per_tensor, random)) {
    double best = std::numeric_limits<double>::infinity();
    for (const double step : {1e-5, 1e-6, 1e-4}) {
      best =
          std::min(best, ErrorOf({analytic[index], Numeric(check, values + index, step)}, scale));
      if (best <= row.tolerance) break;
    }
    row.max_error = std::max(row.max_error, best);
    ++row.checked;
  }
  row.ok = row.max_error <= row.tolerance;
  return row;
}

}  // namespace

std::vector<GradCheckRow> CheckGradients(const GradCheckCase& check,
                                         const GradCheckOptions& options) {
  ZeroGradients(check.parameters);
  check.backward();
  std::vector<GradCheckInput> targets;
  // The losses run no backward pass, so the gradients stay as they are while values move.
  for (const Parameter* parameter : check.parameters) {
    targets.push_back({parameter->name, parameter->value, parameter->gradient});
  }
  targets.insert(targets.end(), check.inputs.begin(), check.inputs.end());
  std::vector<GradCheckRow> rows;
  for (const GradCheckInput& target : targets) {
    if (target.value.elements() > 0) rows.push_back(CheckTensor(check, target, options));
  }
  return rows;
}

std::vector<GradCheckRow> RunGradCheck(const GradCheckOptions& options) {
  std::vector<GradCheckRow> rows;
  for (const GradCheckCase& check : AllGradCheckCases(options.seed)) {
    const std::vector<GradCheckRow> found = CheckGradients(check, options);
    rows.insert(rows.end(), found.begin(), found.end());
  }
  return rows;
}

}  // namespace headlight
