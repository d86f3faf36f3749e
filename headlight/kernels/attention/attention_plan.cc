// The choice of a kernel, and what a plan says of it.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "headlight/base/cpu.h"
#include "headlight/kernels/attention/attention_fused.h"
#include "headlight/kernels/attention/attention_internal.h"
#include "headlight/kernels/attention/attention_storage.h"
#include "headlight/kernels/half_formats.h"

namespace headlight {
namespace attention {

std::string FusedRefusal(const AttentionProblem& problem) {
  if (problem.dtype != DType::kF32) return fmt::format("dtype is {}", DTypeName(problem.dtype));
  if (!(static_cast<float>(problem.EffectiveScale()) > 0)) {
    return fmt::format("scale is {}, must be positive", problem.EffectiveScale());
  }
  const auto extreme = [](double value) { return value < 1e-15 || value > 1e15; };
  const bool modified =
      problem.softcap || !problem.bias.alibi_slopes.empty() || !problem.bias.additive.empty();
  if (modified && (extreme(problem.EffectiveScale()) || extreme(problem.softcap.value_or(1)))) {
    return fmt::format("scale is {} and softcap {}, must be in 1e-15..1e15 with softcap or bias",
                       problem.EffectiveScale(), problem.softcap.value_or(1));
  }
  if (problem.head_dim > 256 || problem.value_dim > 256) {
    return fmt::format("head_dim is {} and value_dim {}, must be at most 256", problem.head_dim,
                       problem.value_dim);
  }
  if (std::max(problem.query_tokens(), problem.key_tokens()) >= int64_t{1} << 31) {
    return "more than 2^31 tokens";
  }
  return "";
}

}  // namespace attention

namespace {

// What acts on a tile of scores, in the order of attention.h.
std::vector<std::string> ModifiersOf(const AttentionProblem& problem) {
  const Mask& mask = problem.mask;
  std::vector<std::string> names;
  const auto add = [&](bool there, const char* name) {
    if (there) names.push_back(name);
  };
  add(!problem.relative.keys.empty(), "relative keys");
  add(problem.softcap.has_value(), "softcap");
  add(!problem.bias.alibi_slopes.empty(), "ALiBi");
  add(!problem.bias.additive.empty(), "additive bias");
  add(mask.causal == Mask::Causal::kAlignedToStart, "causal from the start");
  add(mask.causal == Mask::Causal::kAlignedToEnd, "causal to the end");
  add(mask.window.has_value(), "window");
  add(!mask.key_lengths.empty(), "key lengths");
  add(!mask.query_documents.empty(), "documents");
  add(mask.blocks.has_value(), "block list");
  add(mask.keep.data != nullptr, "keep matrix");
  add(problem.nonfinite == NonFiniteScores::kReplaceByZero, "non-finite scores replaced");
  add(problem.dropout.rate > 0, "dropout");
  add(!problem.head_gates.empty(), "head gates");
  return names;
}

// Whether all sequences are decoded, if their features are adjacent.
bool AllDecode(const AttentionProblem& problem) {
  for (int64_t s = 0; s < problem.batch(); ++s) {
    if (!attention::MayDecode(problem, s)) return false;
  }
  return problem.query_tokens() > 0;
}

}  // namespace

std::string AttentionPlan::ToString() const {
  std::string text = kernel;
  if (query_rows > 0) {
    text += fmt::format(", strips of {} queries, blocks of {} queries and {} keys", query_rows,
                        query_block, key_block);
  }
  for (size_t i = 0; i < modifiers.size(); ++i) {
    text += (i == 0 ? "; with " : ", ") + modifiers[i];
  }
  for (const std::string& refusal : refusals) text += "\n  not " + refusal;
  return text;
}

namespace attention {

AttentionPlan PlanOnUnit(Bf16Unit unit, const AttentionProblem& problem) {
  CheckAttentionProblem(problem);
  if (IsStorage(problem.dtype)) {
    AttentionPlan wide = PlanOnUnit(unit, WideProblem(problem));
    wide.kernel += fmt::format(", {} in memory", DTypeName(problem.dtype));
    return wide;
  }
  const Isa isa = SelectedIsa();
  AttentionPlan plan;
  plan.modifiers = ModifiersOf(problem);
  const std::string refusal = FusedRefusal(problem);
  if (!refusal.empty()) {
    plan.kernel = fmt::format("reference {}", DTypeName(problem.dtype));
    plan.refusals.push_back("fused f32: " + refusal);
    return plan;
  }
  const ProductPlan products = PlanProducts(problem, unit);
  if (AllDecode(problem)) {
    plan.kernel = fmt::format("fused f32 {}, decoding", IsaName(isa));
    plan.query_rows = 1;
    plan.query_block = kDecodingQueries;
    plan.key_block = kDecodingKeys;
    return plan;
  }
  plan.query_block = kForwardRows;
  if (products.unit != Bf16Unit::kNone) {
    plan.kernel = fmt::format("fused bf16 {}", Bf16UnitName(products.unit));
    plan.query_rows = FusedBf16StripRows();
    plan.key_block = kKeyBlock;
    return plan;
  }
  plan.kernel = fmt::format("fused f32 {}{}", IsaName(isa),
                            products.rounds ? ", operands rounded to bf16" : "");
  plan.query_rows = FusedStripRows();
  plan.key_block = kKeyBlock;
  if (products.rounds) {
    plan.refusals.push_back(
        unit == Bf16Unit::kNone
            ? "fused bf16: the machine multiplies no bf16"
            : fmt::format("fused bf16 {}: tables of relative positions", Bf16UnitName(unit)));
  }
  return plan;
}

}  // namespace attention

AttentionPlan PlanAttention(const AttentionProblem& problem) {
  return attention::PlanOnUnit(SelectedBf16Unit(), problem);
}

}  // namespace headlight
