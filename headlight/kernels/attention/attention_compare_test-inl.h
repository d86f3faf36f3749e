// Comparison of fused results with the reference, within stated bounds, and a loop over ISAs.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "headlight/base/cpu.h"
#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_fused.h"
#include "headlight/kernels/attention/attention_internal.h"
#include "headlight/kernels/attention/attention_test-inl.h"
#include "hwy/targets.h"

namespace headlight::attention_test {

// Runs body once for each ISA that is built and that this CPU has.
inline void OnEveryIsa(const std::function<void()>& body) {
  SelectedIsa();  // decides before the targets are mocked
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

// Runs body for each unit that this machine has, kNone among them.
inline void OnEveryUnit(const std::function<void(Bf16Unit)>& body) {
  for (Bf16Unit unit : {Bf16Unit::kNone, Bf16Unit::kAvx512Bf16, Bf16Unit::kAmx}) {
    if (MachineHas(unit)) body(unit);
  }
}

struct Results {
  AttentionOutputs outputs;
  AttentionGradients gradients;
};

inline Results RunOnUnit(const Case& made, Bf16Unit unit) {
  Results results{MakeOutputs(made), MakeGradients(made)};
  attention::ForwardOnUnit(unit, made.problem, made.inputs, results.outputs);
  attention::BackwardOnUnit(unit, made.problem, made.inputs, results.outputs, made.out_gradient,
                            results.gradients);
  return results;
}

inline Results RunFused(const Case& made) {
  Results results{MakeOutputs(made), MakeGradients(made)};
  AttentionForward(made.problem, made.inputs, results.outputs);
  AttentionBackward(made.problem, made.inputs, results.outputs, made.out_gradient,
                    results.gradients);
  return results;
}

inline Results RunReference(const Case& made) {
  Results results{MakeOutputs(made), MakeGradients(made)};
  AttentionForwardReference(made.problem, made.inputs, results.outputs);
  AttentionBackwardReference(made.problem, made.inputs, made.out_gradient, results.gradients);
  return results;
}

// Largest Euclidean norm of the rows (last axis) of a rank-3 tensor; non-finite values count as 0.
inline double LargestRowNorm(const Tensor& tensor) {
  if (tensor.empty()) return 0;
  const std::vector<double> values = Values(tensor);
  const size_t width = static_cast<size_t>(tensor.size(2));
  double largest = 0;
  for (size_t row = 0; row + width <= values.size(); row += width) {
    double square = 0;
    for (size_t c = row; c < row + width; ++c) {
      if (std::isfinite(values[c])) square += values[c] * values[c];
    }
    largest = std::max(largest, std::sqrt(square));
  }
  return largest;
}

// Largest finite magnitude of a bias.
inline double LargestBias(const AttentionProblem& problem) {
  double slope = 0;
  for (double each : problem.bias.alibi_slopes) slope = std::max(slope, std::abs(each));
  const int64_t longest =
      std::max(LongestOf(problem.query_offsets), LongestOf(problem.key_offsets));
  return slope * static_cast<double>(longest) + LargestMagnitude(Values(problem.bias.additive));
}

// What is wrong with `got`; empty: nothing. Non-finite values must be the same.
inline std::string Difference(const char* name, const Tensor& got, const Tensor& want,
                              double tolerance) {
  const std::vector<double> x = Values(got), y = Values(want);
  if (x.size() != y.size()) return fmt::format("{}: {} values, not {}", name, x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const bool same = std::isnan(y[i])   ? std::isnan(x[i])
                      : std::isinf(y[i]) ? x[i] == y[i]
                                         : std::abs(x[i] - y[i]) <= tolerance;
    if (!same) {
      return fmt::format("{}[{}]: {} should be {} +- {}", name, i, x[i], y[i], tolerance);
    }
  }
  return "";
}

// The bounds. A score is a sum of head_dim products rounded in f32: its error is at most
// eps * sum |q k| <= eps * S with S = scale * |q| |k| (Cauchy-Schwarz), and lse adds as much again.
// An error of a score is a relative error of its weight, so a weight is off by about
// eps * (2 S + a few). Sums over keys or queries add relative eps each, hardly any of it
// systematic. A bias B is rounded, and so is its sum with the score: S + B in place of S. Softcap
// makes scores and their errors smaller, but for few eps of itself. 8 covers the few and the sums;
// each bound is 8 * eps * (1 + S) * the magnitude of what is summed: for sums that may cancel, the
// largest of one full term and of the result itself.
//
// In bf16 an operand is off by u = 2^-8 of itself (half of the distance of two numbers), so that a
// score is off by at most 2 u S, as lse is, and a product of weights and values, or of gradients,
// by 2 u of its terms and what its weights are off. That would be 4 u S if all scores were off by
// as much as they can be and in opposite directions; roundings of head_dim factors are independent,
// and nowhere near. Hence 2 u (1 + S), without the bias, which is not rounded.
inline std::string CompareWithReference(const Case& made, const Results& got, const Results& want) {
  const double eps = std::numeric_limits<float>::epsilon();
  const double scale = std::abs(made.problem.EffectiveScale());
  const double query = LargestRowNorm(made.inputs.query);
  const double key = LargestRowNorm(made.inputs.key) + LargestRowNorm(made.problem.relative.keys);
  const double value =
      LargestRowNorm(made.inputs.value) + LargestRowNorm(made.problem.relative.values);
  const double gradient = LargestRowNorm(made.out_gradient);
  double factor = DropoutFactor(made.problem.dropout);
  const double open = factor * value * gradient * static_cast<double>(made.problem.query_tokens());
  double gate = made.problem.head_gates.empty() ? 1 : 0;
  for (double each : made.problem.head_gates) gate = std::max(gate, std::abs(each));
  factor *= gate;
  double relative = 8 * eps * (1 + scale * query * key + LargestBias(made.problem));
  if (made.problem.precision == Precision::kBF16) {
    relative += 2.0 / 256 * (1 + scale * query * key);
  }
  const double score_gradient = 2 * gradient * value * factor;  // of P (dP - D), P <= 1
  const auto bound = [&](double term, const Tensor& result) {
    return relative * std::max(term, LargestMagnitude(Values(result)));
  };
  const AttentionGradients& g = want.gradients;
  for (const std::string& difference : {
           Difference("out", got.outputs.out, want.outputs.out, relative * value * factor),
           Difference("lse", got.outputs.lse, want.outputs.lse, relative),
           Difference("query gradient", got.gradients.query, g.query,
                      bound(scale * score_gradient * key, g.query)),
           Difference("key gradient", got.gradients.key, g.key,
                      bound(scale * score_gradient * query, g.key)),
           Difference("value gradient", got.gradients.value, g.value,
                      bound(gradient * factor, g.value)),
           Difference("relative keys gradient", got.gradients.relative_keys, g.relative_keys,
                      bound(scale * score_gradient * query, g.relative_keys)),
           Difference("relative values gradient", got.gradients.relative_values, g.relative_values,
                      bound(gradient * factor, g.relative_values)),
           Difference("gate gradient", got.gradients.gates, g.gates, relative * open),
           Difference("bias gradient", got.gradients.bias, g.bias, relative * score_gradient),
       }) {
    if (!difference.empty()) return difference;
  }
  if (got.outputs.replaced_scores != want.outputs.replaced_scores) {
    return fmt::format("replaced scores: {} should be {}", got.outputs.replaced_scores,
                       want.outputs.replaced_scores);
  }
  return "";
}

// The fused kernels run, and agree with the reference on every ISA.
inline void ExpectLikeReference(const Case& made) {
  ASSERT_TRUE(PlanAttention(made.problem).refusals.empty())
      << PlanAttention(made.problem).ToString();
  const Results want = RunReference(made);
  OnEveryIsa([&] {
    EXPECT_EQ(CompareWithReference(made, RunFused(made), want), "")
        << "strips of " << attention::FusedStripRows() << " queries";
  });
}

// Processor time of this thread: what other programs do hardly changes it.
inline double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds of the fastest of five runs, forward or backward, on one thread.
inline double BestSeconds(const Case& made, bool backward) {
  Results results{MakeOutputs(made), MakeGradients(made)};
  AttentionForward(made.problem, made.inputs, results.outputs);
  double seconds = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 5; ++run) {
    const double start = ThreadSeconds();
    if (backward) {
      AttentionBackward(made.problem, made.inputs, results.outputs, made.out_gradient,
                        results.gradients);
    } else {
      AttentionForward(made.problem, made.inputs, results.outputs);
    }
    seconds = std::min(seconds, ThreadSeconds() - start);
  }
  return seconds;
}

// Seconds of `some` over those of `all`, on one thread. A noisy machine gets five chances to show a
// ratio below `wanted`.
inline double TimeRatio(const Case& some, const Case& all, bool backward, double wanted) {
  const int threads = NumThreads();
  SetNumThreads(1);
  double ratio = std::numeric_limits<double>::infinity();
  for (int chance = 0; chance < 5 && ratio >= wanted; ++chance) {
    ratio = std::min(ratio, BestSeconds(some, backward) / BestSeconds(all, backward));
  }
  SetNumThreads(threads);
  return ratio;
}

inline bool SameBits(const Results& a, const Results& b) {
  return SameBits(a.outputs.out, b.outputs.out) && SameBits(a.outputs.lse, b.outputs.lse) &&
         SameBits(a.gradients.query, b.gradients.query) &&
         SameBits(a.gradients.key, b.gradients.key) &&
         SameBits(a.gradients.value, b.gradients.value) &&
         SameBits(a.gradients.bias, b.gradients.bias) &&
         SameBits(a.gradients.gates, b.gradients.gates);
}

// Returns what it is on one thread.
inline Results ExpectSameBitsForAnyThreads(const Case& made) {
  const int threads = NumThreads();
  SetNumThreads(1);
  Results first = RunFused(made);
  for (int count : {2, 3, 8}) {
    SetNumThreads(count);
    EXPECT_TRUE(SameBits(first, RunFused(made))) << count;
  }
  SetNumThreads(threads);
  return first;
}

// The weights and statistics that `asked` asks for. As AttentionCases.FusedProbesLikeReference:
// weights to eps * (2 S + a few), times distances.
inline void ExpectProbesLikeReference(const Case& made, const AttentionOutputs& asked) {
  AttentionOutputs want = asked;
  AttentionForwardReference(made.problem, made.inputs, want);
  OnEveryIsa([&] {
    AttentionOutputs got = asked;
    AttentionForward(made.problem, made.inputs, got);
    const HeadStatistics &seen = *got.statistics, &expected = *want.statistics;
    EXPECT_EQ(Difference("weights", got.weights[0].weights, want.weights[0].weights, 1e-5), "");
    EXPECT_EQ(Difference("entropy", seen.entropy, expected.entropy, 1e-4), "");
    EXPECT_EQ(Difference("distance", seen.distance, expected.distance, 6e-3), "");
    EXPECT_EQ(
        Difference("absolute distance", seen.absolute_distance, expected.absolute_distance, 6e-3),
        "");
    if (asked.statistics->key_set.empty()) return;
    EXPECT_EQ(Difference("mass", seen.set_mass, expected.set_mass, 1e-5), "");
  });
}

// A good problem that `spoil` makes bad: an error of this kind, whose message has this part.
inline void ExpectRefused(const Case& good, const std::function<void(Case&)>& spoil, ErrorKind kind,
                          const std::string& part) {
  Case bad = good;
  spoil(bad);
  AttentionOutputs outputs;
  try {
    AttentionForward(bad.problem, bad.inputs, outputs);
    ADD_FAILURE() << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace headlight::attention_test
