// Random attention problems that combine everything there is.
#pragma once

#include <fmt/format.h>

#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_compare_test-inl.h"

namespace headlight::attention_test {

// Draws of one random problem; each thing is there with a chance of its own.
class ProblemDraw {
 public:
  explicit ProblemDraw(uint64_t seed) : random_(seed, 20), seed_(seed) {}

  Case Draw() {
    Options options = F32(DrawLengths());
    options.kv_heads = Between(1, 3);
    options.heads = options.kv_heads * Between(1, 3);
    options.head_dim = Between(1, 40);
    options.value_dim = Chance(0.5) ? options.head_dim : Between(1, 40);
    options.seed = seed_;
    options.magnitude = Chance(0.2) ? 3 : 1;
    if (Chance(0.25)) options.relative_max = Between(1, 50);
    Case made = MakeCase(options);
    AddMasks(made);
    AddScores(made);
    if (Chance(0.4)) made.problem.precision = Precision::kBF16;
    return made;
  }

  bool Chance(double share) { return random_.Uniform() < share; }
  int64_t Between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_.Uniform() * static_cast<double>(most - least + 1));
  }

 private:
  std::vector<Lengths> DrawLengths() {
    std::vector<Lengths> lengths;
    const bool equal = Chance(0.5);
    const int64_t longest = Chance(0.1) ? 700 : 90;
    for (int64_t batch = Between(1, longest > 90 ? 2 : 5); batch > 0; --batch) {
      const int64_t queries = Chance(0.1) ? Between(0, 1) : Between(0, longest);
      lengths.push_back({queries, equal ? queries : Between(0, longest)});
    }
    return lengths;
  }

  void AddMasks(Case& made) {
    AttentionProblem& problem = made.problem;
    Mask& mask = problem.mask;
    if (Chance(0.5)) {
      mask.causal = Chance(0.5) ? Mask::Causal::kAlignedToStart : Mask::Causal::kAlignedToEnd;
    }
    if (Chance(0.3)) mask.window = Mask::Window{Between(0, 40), Between(0, 40)};
    if (Chance(0.3)) {
      for (size_t s = 1; s < problem.key_offsets.size(); ++s) {
        mask.key_lengths.push_back(Between(0, problem.key_offsets[s] - problem.key_offsets[s - 1]));
      }
    }
    if (Chance(0.3)) AddKeep(made, random_.Uniform(), seed_);
    if (Chance(0.3)) AddDocuments(made, Between(1, 6), seed_);
    if (Chance(0.3)) {
      AddBlocks(made, random_.Uniform(),
                {Between(1, 70), Between(1, 70), Chance(0.5) ? 1 : problem.heads, {}, {}}, seed_);
    }
  }

  void AddScores(Case& made) {
    AttentionProblem& problem = made.problem;
    if (Chance(0.3)) problem.scale = 0.05 + random_.Uniform();
    if (Chance(0.3)) problem.softcap = 0.5 + 10 * random_.Uniform();
    if (Chance(0.3)) problem.bias.alibi_slopes = AlibiSlopes(problem.heads);
    if (Chance(0.3)) AddBias(made, 0.3 * random_.Uniform(), seed_);
    if (Chance(0.3)) {
      problem.dropout.rate = 0.5 * random_.Uniform();
      problem.dropout.seed = seed_;
    }
    if (Chance(0.3)) {
      for (int64_t h = 0; h < problem.heads; ++h) {
        problem.head_gates.push_back(Chance(0.4) ? 0 : 2 * random_.Uniform() - 1);
      }
    }
    if (Chance(0.2)) {
      problem.nonfinite = NonFiniteScores::kReplaceByZero;
      for (Tensor* tensor : {&made.inputs.query, &made.inputs.key}) {
        if (tensor->elements() == 0 || Chance(0.5)) continue;
        tensor->data<float>()[Between(0, tensor->elements() - 1)] = kNaN;
      }
    }
  }

  RandomStream random_;
  uint64_t seed_;
};

inline AttentionOutputs AskForEverything(const Case& made) {
  AttentionOutputs outputs = MakeOutputs(made);
  for (int64_t s = 0; s < made.problem.batch(); ++s) outputs.weights.push_back({s, 0, {}});
  outputs.statistics = HeadStatistics{};
  outputs.statistics->heads = {made.problem.heads - 1};
  outputs.statistics->top = 3;
  outputs.statistics->key_set.assign(static_cast<size_t>(made.problem.key_tokens()), 0);
  for (size_t j = 0; j < outputs.statistics->key_set.size(); j += 2) {
    outputs.statistics->key_set[j] = 1;
  }
  return outputs;
}

// Weights are off as those behind `out` are (attention_compare_test-inl.h), relative to themselves;
// distances are weighed by up to the longest length, and w ln w by up to 90.
inline std::string CompareProbes(const Case& made, const AttentionOutputs& want) {
  const double scale = made.problem.EffectiveScale();
  const double eps = std::numeric_limits<float>::epsilon();
  const double longest = static_cast<double>(
      std::max(LongestOf(made.problem.query_offsets), LongestOf(made.problem.key_offsets)));
  const double key = LargestRowNorm(made.inputs.key) + LargestRowNorm(made.problem.relative.keys);
  const double bound =
      8 * eps * (1 + scale * LargestRowNorm(made.inputs.query) * key + LargestBias(made.problem));
  AttentionOutputs got = AskForEverything(made);
  AttentionForward(made.problem, made.inputs, got);
  for (size_t s = 0; s < got.weights.size(); ++s) {
    const std::string difference =
        Difference("weights", got.weights[s].weights, want.weights[s].weights, bound);
    if (!difference.empty()) return difference;
  }
  const HeadStatistics &x = *got.statistics, &y = *want.statistics;
  for (const std::string& difference :
       {Difference("entropy", x.entropy, y.entropy, 90 * bound),
        Difference("distance", x.distance, y.distance, longest * bound),
        Difference("absolute distance", x.absolute_distance, y.absolute_distance, longest * bound),
        Difference("largest weight", x.largest_weight, y.largest_weight, bound),
        Difference("set mass", x.set_mass, y.set_mass, bound),
        Difference("top weights", x.top_weights, y.top_weights, bound)}) {
    if (!difference.empty()) return difference;
  }
  return "";
}

// A key that nobody looks at may hold NaN: nothing changes.
inline std::string ComparePoisoned(const Case& made, Bf16Unit unit, const Results& clean,
                                   ProblemDraw& draw) {
  if (made.problem.nonfinite == NonFiniteScores::kReplaceByZero) return "";
  if (made.problem.key_tokens() == 0) return "";
  Case poisoned = made;
  poisoned.inputs.key = made.inputs.key.Clone(MemoryTag::kOther);
  poisoned.inputs.value = made.inputs.value.Clone(MemoryTag::kOther);
  const int64_t token = draw.Between(0, made.problem.key_tokens() - 1);
  for (Tensor* tensor : {&poisoned.inputs.key, &poisoned.inputs.value}) {
    const View<float> view = tensor->view<float>();
    for (int64_t h = 0; h < view.size(1); ++h) {
      for (int64_t c = 0; c < view.size(2); ++c) view(token, h, c) = kNaN;
    }
  }
  if (FindNonFiniteScore(poisoned.problem, poisoned.inputs)) return "";
  // Closed heads are computed for their gates' gradients.
  Results got{MakeOutputs(made), MakeGradients(made)};
  attention::ForwardOnUnit(unit, poisoned.problem, poisoned.inputs, got.outputs);
  got.gradients.gates = Tensor();
  attention::BackwardOnUnit(unit, poisoned.problem, poisoned.inputs, got.outputs, made.out_gradient,
                            got.gradients);
  got.gradients.gates = clean.gradients.gates;
  return SameBits(clean, got) ? "" : fmt::format("NaN in key {} leaks", token);
}

// One random problem: fused against reference, probes, any number of threads, poison, on every ISA
// or by every unit. What is wrong, with the plan; empty: nothing.
inline std::string CheckRandomProblem(uint64_t seed) {
  ProblemDraw draw(seed);
  const Case made = draw.Draw();
  const AttentionPlan plan = PlanAttention(made.problem);
  std::string wrong = plan.kernel.starts_with("fused") ? "" : "refused";
  const Results want = RunReference(made);
  AttentionOutputs probes = AskForEverything(made);
  AttentionForwardReference(made.problem, made.inputs, probes);
  const auto check = [&](Bf16Unit unit) {
    if (!wrong.empty()) return;
    SetNumThreads(1);
    const Results got = RunOnUnit(made, unit);
    wrong = CompareWithReference(made, got, want);
    if (wrong.empty()) wrong = CompareProbes(made, probes);
    if (wrong.empty()) wrong = ComparePoisoned(made, unit, got, draw);
    SetNumThreads(static_cast<int>(draw.Between(2, 5)));
    if (wrong.empty() && !SameBits(got, RunOnUnit(made, unit))) {
      wrong = "other bits for other threads";
    }
    if (!wrong.empty()) wrong += fmt::format(" (unit {})", Bf16UnitName(unit));
  };
  OnEveryIsa([&] { check(Bf16Unit::kNone); });
  if (made.problem.precision == Precision::kBF16) OnEveryUnit(check);
  return wrong.empty() ? "" : fmt::format("seed {}: {}; {}", seed, wrong, plan.ToString());
}

}  // namespace headlight::attention_test
