// The choices that layers share, with their names on the command line and in run files, and what a
// forward pass is told.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headlight/kernels/attention/attention_implementation.h"
#include "headlight/kernels/precision.h"
#include "headlight/nn/probe.h"

namespace headlight {

// kNone: no order. kLearned: a table added to the embedding. kSinusoidal: Vaswani et al. 2017,
// section 3.5. kRelative: Shaw et al. 2018, inside attention. kAlibi: Press et al. 2022, inside
// attention: scores fall with the distance, faster in some heads than in others; no parameters.
enum class PositionKind { kNone, kLearned, kSinusoidal, kRelative, kAlibi };
// kPost: norm(x + f(x)) (Vaswani et al. 2017). kPre: x + f(norm(x)), with a norm at the end.
enum class NormPlacement { kPost, kPre };
enum class HiddenActivation { kRelu, kGelu };
// How a text's token vectors become one. kAttention: softmax over a learned score per token.
enum class PoolingChoice { kMean, kFirst, kMax, kAttention };
enum class ScaleKind { kInverseSqrt /* 1/sqrt(d) */, kInverseFourthRoot /* d^-0.25 */, kGiven };
// kZero: non-finite attention scores count as 0 (and are counted); kPropagate: they come out as
// NaN.
enum class NonfinitePolicy { kPropagate, kZero };

// "none", "learned", "sinusoidal", "relative", "alibi"; "post", "pre"; "relu", "gelu"; "mean",
// "first", "max", "attention"; "sqrt", "fourth-root", "given"; "propagate", "zero"; "fp32", "bf16".
// Those of AttentionImplementation stand with it: "fused", "naive", "per-head".
const char* Name(PositionKind kind);
const char* Name(NormPlacement placement);
const char* Name(HiddenActivation activation);
const char* Name(PoolingChoice kind);
const char* Name(ScaleKind kind);
const char* Name(NonfinitePolicy policy);
const char* Name(Precision precision);

// The inverse; throws kUsage with the names that exist: `Parse<PoolingChoice>("mean")`. Defined for
// the enumerations above.
template <typename Choice>
Choice Parse(std::string_view name);
template <>
PositionKind Parse(std::string_view name);
template <>
NormPlacement Parse(std::string_view name);
template <>
HiddenActivation Parse(std::string_view name);
template <>
PoolingChoice Parse(std::string_view name);
template <>
ScaleKind Parse(std::string_view name);
template <>
NonfinitePolicy Parse(std::string_view name);
template <>
Precision Parse(std::string_view name);

// How far a token sees: keys from `left` before to `right` behind it, itself included.
struct AttentionWindow {
  int64_t left = 0;
  int64_t right = 0;

  friend bool operator==(const AttentionWindow&, const AttentionWindow&) = default;
};

struct ForwardOptions {
  bool training = false;  // dropout on
  uint64_t seed = 0;      // of dropout
  int64_t step = 0;       // dropout differs from step to step
  Probe* probe = nullptr;
  NonfinitePolicy nonfinite = NonfinitePolicy::kPropagate;
  // False when no Backward follows: layers then share their buffers, even with a Saved given.
  bool for_backward = true;
};

}  // namespace headlight
