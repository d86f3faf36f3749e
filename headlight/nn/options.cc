#include "headlight/nn/options.h"

#include <array>
#include <span>

#include "headlight/base/error.h"

namespace headlight {
namespace {

// Names in the order of the enumerators.
constexpr std::array kPositions{"none", "learned", "sinusoidal", "relative", "alibi"};
constexpr std::array kPlacements{"post", "pre"};
constexpr std::array kActivations{"relu", "gelu"};
constexpr std::array kPoolings{"mean", "first", "max", "attention"};
constexpr std::array kScales{"sqrt", "fourth-root", "given"};
constexpr std::array kPolicies{"propagate", "zero"};
constexpr std::array kPrecisions{"fp32", "bf16"};

template <typename Choice>
Choice Find(std::span<const char* const> names, std::string_view name, const char* what) {
  std::string known;
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return static_cast<Choice>(i);
    known += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  throw Error(ErrorKind::kUsage, "{}: must be one of {}, found '{}'", what, known, name);
}

}  // namespace

const char* Name(PositionKind kind) { return kPositions[static_cast<size_t>(kind)]; }
const char* Name(NormPlacement placement) { return kPlacements[static_cast<size_t>(placement)]; }
const char* Name(HiddenActivation kind) { return kActivations[static_cast<size_t>(kind)]; }
const char* Name(PoolingChoice kind) { return kPoolings[static_cast<size_t>(kind)]; }
const char* Name(ScaleKind kind) { return kScales[static_cast<size_t>(kind)]; }
const char* Name(NonfinitePolicy policy) { return kPolicies[static_cast<size_t>(policy)]; }
const char* Name(Precision precision) { return kPrecisions[static_cast<size_t>(precision)]; }

template <>
PositionKind Parse(std::string_view name) {
  return Find<PositionKind>(kPositions, name, "positions");
}
template <>
NormPlacement Parse(std::string_view name) {
  return Find<NormPlacement>(kPlacements, name, "norm");
}
template <>
HiddenActivation Parse(std::string_view name) {
  return Find<HiddenActivation>(kActivations, name, "activation");
}
template <>
PoolingChoice Parse(std::string_view name) {
  return Find<PoolingChoice>(kPoolings, name, "pooling");
}
template <>
ScaleKind Parse(std::string_view name) {
  return Find<ScaleKind>(kScales, name, "scale");
}
template <>
NonfinitePolicy Parse(std::string_view name) {
  return Find<NonfinitePolicy>(kPolicies, name, "on-nonfinite");
}
template <>
Precision Parse(std::string_view name) {
  return Find<Precision>(kPrecisions, name, "precision");
}

}  // namespace headlight
