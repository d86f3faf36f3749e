// Entry points: checks, the choice of a kernel, and how its work is split into tasks.
#include "headlight/kernels/attention/attention.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>
#include <vector>

#include "headlight/base/cpu.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_fused.h"
#include "headlight/kernels/attention/attention_internal.h"
#include "headlight/kernels/attention/attention_mask.h"
#include "headlight/kernels/attention/attention_storage.h"
#include "headlight/kernels/attention/decoding_work.h"
#include "headlight/kernels/attention/head_problem.h"
#include "headlight/kernels/attention/table_gradients.h"
#include "headlight/kernels/bf16_rounding.h"
#include "headlight/kernels/half_formats.h"

namespace headlight {
namespace {

using namespace attention;

int64_t StripRowsOf(Bf16Unit unit) {
  return unit == Bf16Unit::kNone ? FusedStripRows() : FusedBf16StripRows();
}

AttentionInputs Rounded(const AttentionInputs& inputs) {
  return {RoundedToBf16(inputs.query), RoundedToBf16(inputs.key), RoundedToBf16(inputs.value)};
}

// Some heads of one sequence and some of its queries: a share of work for one worker.
struct Share {
  int64_t sequence, first_head, last_head;
  int64_t first_query, last_query;
  int64_t work;  // scores
};

// Rows of a share when there are `heads` to share out, those of all sequences: a head whole if it
// can be, but so that there are some shares for every worker.
int64_t QueryRowsOfShares(const AttentionProblem& problem, int64_t heads, int64_t queries,
                          Bf16Unit unit) {
  constexpr int64_t kFewest = 96;  // packing a key block should pay
  const int64_t wanted = 4 * NumThreads();
  int64_t parts =
      std::max((queries + kForwardRows - 1) / kForwardRows, wanted / std::max<int64_t>(heads, 1));
  parts = std::clamp<int64_t>(parts, 1, std::max<int64_t>(queries / kFewest, 1));
  parts = std::max(parts, (queries + kForwardRows - 1) / kForwardRows);
  const int64_t rows = (queries + parts - 1) / std::max<int64_t>(parts, 1);
  if (problem.mask.blocks) {
    const int64_t block = problem.mask.blocks->query_block;
    return std::max<int64_t>(BlockCount(rows, block), 1) * block;
  }
  const int64_t strip = StripRowsOf(unit);
  return std::min(kForwardRows, std::max<int64_t>((rows + strip - 1) / strip * strip, strip));
}

enum class Split { kHeads, kHeadsAndQueries };

// Shares of at least about `kSmallShare` scores, so that handing them out costs nothing, the
// largest first, so that the last ones to end are small. How work is grouped changes no result.
std::vector<Share> SplitIntoShares(const AttentionProblem& problem, const PreparedMask& mask,
                                   int64_t heads, Split split, Bf16Unit unit) {
  constexpr int64_t kSmallShare = 16384;
  std::vector<Share> shares;
  for (int64_t s = 0; s < problem.batch(); ++s) {
    const SequenceRange range = RangeOf(problem, s);
    const int64_t query_rows =
        split == Split::kHeads
            ? std::max<int64_t>(range.queries, 1)
            : QueryRowsOfShares(problem, problem.batch() * problem.heads, range.queries, unit);
    for (int64_t query = 0; query < std::max<int64_t>(range.queries, 1); query += query_rows) {
      const int64_t last = std::min(query + query_rows, range.queries);
      const int64_t work = std::max<int64_t>(mask.KeptScores(s, query, last), 1);
      const int64_t together = std::clamp<int64_t>(kSmallShare / work, 1, heads);
      for (int64_t head = 0; head < heads; head += together) {
        const int64_t last_head = std::min(head + together, heads);
        shares.push_back({s, head, last_head, query, last, work * (last_head - head)});
      }
    }
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.work > b.work; });
  return shares;
}

ProbeStatistics StatisticsOf(HeadStatistics& statistics, int64_t slot, int64_t first_token) {
  const auto at = [&](Tensor& tensor) {
    return tensor.empty() ? nullptr : tensor.data<float>() + slot * tensor.stride(0) + first_token;
  };
  Tensor& keys = statistics.largest_key;
  ProbeStatistics to{
      at(statistics.entropy),           at(statistics.distance),
      at(statistics.absolute_distance), at(statistics.largest_weight),
      at(statistics.set_mass),          keys.data<int32_t>() + slot * keys.stride(0) + first_token};
  if (statistics.top > 0) {
    const int64_t first = slot * statistics.top_keys.stride(0) + first_token * statistics.top;
    to.top = statistics.top;
    to.top_weights = statistics.top_weights.data<float>() + first;
    to.top_keys = statistics.top_keys.data<int32_t>() + first;
  }
  return to;
}

// Which statistics the forward pass makes beside its output: those of heads that are asked for
// once. The others are left to ProbeFused: with the keys of the largest weights, which need whole
// rows; where products are of bf16, since statistics are those of f32; of sequences that decode.
class StatisticsBeside {
 public:
  StatisticsBeside(const AttentionProblem& problem, const ProductPlan& plan,
                   AttentionOutputs& outputs)
      : statistics_(outputs.statistics ? &*outputs.statistics : nullptr) {
    if (statistics_ == nullptr || statistics_->top > 0) return;
    if (plan.unit != Bf16Unit::kNone || plan.rounds) return;
    slots_.assign(static_cast<size_t>(problem.heads), -1);
    for (size_t slot = 0; slot < statistics_->heads.size(); ++slot) {
      int64_t& of_head = slots_[static_cast<size_t>(statistics_->heads[slot])];
      if (of_head < 0) of_head = static_cast<int64_t>(slot);
    }
  }

  bool Makes(size_t slot) const {
    return !slots_.empty() &&
           slots_[static_cast<size_t>(statistics_->heads[slot])] == static_cast<int64_t>(slot);
  }
  void Ask(const SequenceRange& range, int64_t head, ForwardTask& task) const {
    const int64_t slot = slots_.empty() ? -1 : slots_[static_cast<size_t>(head)];
    if (slot < 0) return;
    task.statistics = StatisticsOf(*statistics_, slot, range.query_begin);
    if (!statistics_->key_set.empty()) {
      task.key_set = statistics_->key_set.data() + range.key_begin;
    }
  }

 private:
  HeadStatistics* statistics_;
  std::vector<int64_t> slots_;  // of each head, -1: none
};

struct ForwardOperands {
  const AttentionProblem& problem;
  const AttentionInputs& inputs;
  const PreparedMask& mask;
  Bf16Unit unit;
  AttentionOutputs& outputs;
  Tensor& lse;
  const StatisticsBeside& statistics;
};

int64_t ForwardShare(const ForwardOperands& in, const Share& share) {
  const SequenceRange range = RangeOf(in.problem, share.sequence);
  int64_t replaced = 0;
  for (int64_t head = share.first_head; head < share.last_head; ++head) {
    HeadProblem made = ProblemOf(in.problem, in.inputs, in.mask, share.sequence, head);
    made.unit = in.unit;
    ForwardTask task;
    task.begin = share.first_query;
    task.end = share.last_query;
    task.out = QueryRows(in.outputs.out, range, head);
    if (!in.lse.empty()) task.lse = LseOf(in.lse, range.query_begin, head);
    in.statistics.Ask(range, head, task);
    replaced += FusedForward(made, task);
  }
  return replaced;
}

void ForwardFused(const ForwardOperands& in, const DecodingWork& decoding, bool rounds) {
  std::vector<Share> shares =
      SplitIntoShares(in.problem, in.mask, in.problem.heads, Split::kHeadsAndQueries, in.unit);
  std::erase_if(shares, [&](const Share& share) { return decoding.Has(share.sequence); });
  const auto whole = static_cast<int64_t>(shares.size());
  const AttentionInputs rounded = rounds && whole > 0 ? Rounded(in.inputs) : AttentionInputs{};
  const ForwardOperands operands{
      in.problem,   rounds ? rounded : in.inputs, in.mask, in.unit, in.outputs, in.lse,
      in.statistics};
  std::vector<int64_t> replaced(static_cast<size_t>(whole + decoding.shares()), 0);
  ParallelFor(static_cast<int64_t>(replaced.size()), [&](int64_t number, int) {
    const auto at = static_cast<size_t>(number);
    replaced[at] =
        number < whole ? ForwardShare(operands, shares[at]) : decoding.RunShare(number - whole);
  });
  ParallelFor(decoding.merges(),
              [&](int64_t number, int) { decoding.Merge(number, in.outputs, in.lse); });
  for (int64_t count : replaced) in.outputs.replaced_scores += count;
}

// One head of one sequence that somebody looks at, or some of its queries.
struct ProbeJob {
  int64_t sequence, head;
  ProbeTask task;
};

// All but what the forward pass made, by whole heads.
std::vector<ProbeJob> ProbeJobs(const AttentionProblem& problem, const StatisticsBeside& beside,
                                const DecodingWork& decoding, AttentionOutputs& outputs) {
  std::vector<ProbeJob> jobs;
  for (HeadWeights& wanted : outputs.weights) {
    Tensor& weights = wanted.weights;
    if (weights.empty()) continue;
    ProbeTask task;
    task.weights = {weights.data<float>(), weights.stride(0), weights.stride(1)};
    jobs.push_back({wanted.sequence, wanted.head, task});
  }
  if (!outputs.statistics) return jobs;
  HeadStatistics& statistics = *outputs.statistics;
  for (int64_t s = 0; s < problem.batch(); ++s) {
    const SequenceRange range = RangeOf(problem, s);
    for (size_t slot = 0; slot < statistics.heads.size(); ++slot) {
      if (beside.Makes(slot) && !decoding.Has(s)) continue;
      ProbeTask task;
      task.statistics = StatisticsOf(statistics, static_cast<int64_t>(slot), range.query_begin);
      if (!statistics.key_set.empty()) task.key_set = statistics.key_set.data() + range.key_begin;
      jobs.push_back({s, statistics.heads[slot], task});
    }
  }
  return jobs;
}

void ProbeFused(const ForwardOperands& in, const DecodingWork& decoding) {
  const AttentionProblem& problem = in.problem;
  const std::vector<ProbeJob> heads = ProbeJobs(problem, in.statistics, decoding, in.outputs);
  std::vector<ProbeJob> jobs;
  for (ProbeJob job : heads) {
    const SequenceRange range = RangeOf(problem, job.sequence);
    const int64_t rows = QueryRowsOfShares(problem, static_cast<int64_t>(heads.size()),
                                           range.queries, Bf16Unit::kNone);
    job.task.lse = LseOf(in.lse, range.query_begin, job.head);
    for (; job.task.begin < range.queries; job.task.begin = job.task.end) {
      job.task.end = std::min(job.task.begin + rows, range.queries);
      jobs.push_back(job);
    }
  }
  ParallelFor(static_cast<int64_t>(jobs.size()), [&](int64_t number, int) {
    const ProbeJob& job = jobs[static_cast<size_t>(number)];
    FusedProbe(ProblemOf(problem, in.inputs, in.mask, job.sequence, job.head), job.task);
  });
}

struct BackwardOperands {
  const AttentionProblem& problem;
  const AttentionInputs& inputs;
  const PreparedMask& mask;
  const AttentionOutputs& outputs;
  const Tensor& out_gradient;
  AttentionGradients& gradients;
  Bf16Unit unit;
};

void BackwardShare(const BackwardOperands& in, const Share& share, int64_t wave_begin,
                   TableGradients& tables) {
  const SequenceRange range = RangeOf(in.problem, share.sequence);
  const int64_t group = in.problem.heads / in.problem.kv_heads;
  const int64_t in_wave = share.sequence - wave_begin;
  std::vector<BackwardHead> heads(static_cast<size_t>(group));
  for (int64_t kv_head = share.first_head; kv_head < share.last_head; ++kv_head) {
    for (int64_t h = 0; h < group; ++h) {
      const int64_t head = kv_head * group + h;
      heads[static_cast<size_t>(h)] = {
          ProblemOf(in.problem, in.inputs, in.mask, share.sequence, head),
          QueryRows(in.outputs.out, range, head),
          QueryRows(in.out_gradient, range, head),
          LseOf(in.outputs.lse, range.query_begin, head),
          QueryRows(in.gradients.query, range, head),
          tables.Of(in.gradients.relative_keys, in_wave, head),
          tables.Of(in.gradients.relative_values, in_wave, head),
          ScoresOf<MutableMatrix>(in.gradients.bias, share.sequence, head)};
      heads[static_cast<size_t>(h)].problem.unit = in.unit;
    }
    FusedBackward({heads.data(), group, KeyRows(in.gradients.key, range, kv_head),
                   KeyRows(in.gradients.value, range, kv_head)});
  }
}

void BackwardFused(const BackwardOperands& in) {
  ZeroBiasGradient(in.gradients);
  TableGradients tables(in.problem, in.gradients);
  const int64_t batch = in.problem.batch(), wave = tables.WaveOf(batch);
  const std::vector<Share> shares =
      SplitIntoShares(in.problem, in.mask, in.problem.kv_heads, Split::kHeads, in.unit);
  for (int64_t begin = 0; begin < batch; begin += wave) {
    std::vector<Share> now;
    std::copy_if(shares.begin(), shares.end(), std::back_inserter(now), [&](const Share& share) {
      return share.sequence >= begin && share.sequence < begin + wave;
    });
    tables.BeginWave(std::min(wave, batch - begin));
    ParallelFor(static_cast<int64_t>(now.size()), [&](int64_t number, int) {
      BackwardShare(in, now[static_cast<size_t>(number)], begin, tables);
    });
    tables.EndWave();
  }
}

// dO . O of one head of one sequence, before the gate: rows that attend to nothing take no part.
double GateGradient(const BackwardOperands& in, int64_t sequence, int64_t head) {
  const SequenceRange range = RangeOf(in.problem, sequence);
  const int64_t value_dim = in.problem.value_dim;
  Matrix out = QueryRows(in.outputs.out, range, head);
  const float* lse = LseOf(in.outputs.lse, range.query_begin, head);
  Tensor computed, computed_lse;
  double gate = in.problem.GateOf(head);
  if (gate == 0) {
    HeadProblem open = ProblemOf(in.problem, in.inputs, in.mask, sequence, head);
    open.gate = 1;
    open.unit = in.unit;
    open.intervals = in.mask.IntervalsOf(sequence);
    computed =
        Tensor::Uninitialized({range.queries, value_dim}, DType::kF32, MemoryTag::kWorkspace);
    computed_lse = Tensor::Uninitialized({range.queries}, DType::kF32, MemoryTag::kWorkspace);
    ForwardTask task;
    task.out = {computed.data<float>(), value_dim, 1};
    task.lse = computed_lse.data<float>();
    const int64_t rows = in.problem.mask.blocks ? range.queries : kForwardRows;
    for (; task.begin < range.queries; task.begin = task.end) {
      task.end = std::min(task.begin + rows, range.queries);
      FusedForward(open, task);
    }
    out = {computed.data<float>(), value_dim, 1};
    lse = computed_lse.data<float>();
    gate = 1;
  }
  const Matrix gradient = QueryRows(in.out_gradient, range, head);
  assert(gradient.data != nullptr && out.data != nullptr);  // there are queries
  double sum = 0;
  for (int64_t i = 0; i < range.queries; ++i) {
    if (lse[i] == -std::numeric_limits<float>::infinity()) continue;
    for (int64_t c = 0; c < value_dim; ++c) {
      sum += static_cast<double>(gradient.at(i, c)) * static_cast<double>(out.at(i, c));
    }
  }
  return sum / gate;
}

void AddGateGradients(const BackwardOperands& in) {
  const int64_t heads = in.problem.heads;
  std::vector<double> sums(static_cast<size_t>(in.problem.batch() * heads), 0.0);
  ParallelFor(static_cast<int64_t>(sums.size()), [&](int64_t number, int) {
    if (RangeOf(in.problem, number / heads).queries == 0) return;
    sums[static_cast<size_t>(number)] = GateGradient(in, number / heads, number % heads);
  });
  const View<float> gates = in.gradients.gates.view<float>();
  for (size_t s = 0; s < sums.size(); ++s) {
    gates(static_cast<int64_t>(s) % heads) += static_cast<float>(sums[s]);
  }
}

}  // namespace

namespace attention {

ProductPlan PlanProducts(const AttentionProblem& problem, Bf16Unit unit) {
  if (problem.precision == Precision::kF32) return {};
  const RelativePositions& relative = problem.relative;
  if (unit != Bf16Unit::kNone && relative.keys.empty() && relative.values.empty()) return {unit};
  return {Bf16Unit::kNone, true};
}

namespace {

// Inputs are checked. `stored` as for DecodingWork.
void ForwardF32(Bf16Unit unit, const AttentionProblem& problem, const AttentionInputs& inputs,
                const AttentionInputs* stored, AttentionOutputs& outputs) {
  PrepareOutputs(problem, outputs);
  const bool probed = !outputs.weights.empty() || outputs.statistics;
  Tensor lse = outputs.lse;
  if (lse.empty() && probed) {
    lse = Tensor::Uninitialized(LseShape(problem), DType::kF32, MemoryTag::kWorkspace);
  }
  const PreparedMask mask(problem, PreparedMask::For::kForward);
  const ProductPlan plan = PlanProducts(problem, unit);
  const DecodingWork decoding(problem, inputs, stored, mask);
  const StatisticsBeside statistics(problem, plan, outputs);
  const ForwardOperands operands{problem, inputs, mask, plan.unit, outputs, lse, statistics};
  ForwardFused(operands, decoding, plan.rounds);
  if (probed) ProbeFused(operands, decoding);
}

}  // namespace

void ForwardOnUnit(Bf16Unit unit, const AttentionProblem& problem, const AttentionInputs& inputs,
                   AttentionOutputs& outputs) {
  SelectedIsa();  // before the first dispatch
  CheckInputs(problem, inputs);
  const bool stored = IsStorage(problem.dtype);
  if (!FusedRefusal(stored ? WideProblem(problem) : problem).empty()) {
    return AttentionForwardReference(problem, inputs, outputs);
  }
  if (!stored) return ForwardF32(unit, problem, inputs, nullptr, outputs);
  ForwardByF32(problem, inputs, Copy::kAllButDecoded, outputs,
               [&](const AttentionProblem& wide, const AttentionInputs& wide_inputs,
                   const AttentionInputs& own, AttentionOutputs& wide_outputs) {
                 CheckInputs(wide, wide_inputs);
                 ForwardF32(unit, wide, wide_inputs, problem.dtype == DType::kBF16 ? &own : nullptr,
                            wide_outputs);
               });
}

void BackwardOnUnit(Bf16Unit unit, const AttentionProblem& problem, const AttentionInputs& inputs,
                    const AttentionOutputs& outputs, const Tensor& out_gradient,
                    AttentionGradients& gradients) {
  SelectedIsa();
  CheckInputs(problem, inputs);
  if (IsStorage(problem.dtype)) {
    return BackwardByF32(problem, inputs, outputs, out_gradient, gradients,
                         [&](const AttentionProblem& wide, const AttentionInputs& wide_inputs,
                             const AttentionOutputs& wide_outputs, const Tensor& wide_gradient,
                             AttentionGradients& to) {
                           BackwardOnUnit(unit, wide, wide_inputs, wide_outputs, wide_gradient, to);
                         });
  }
  CheckTokens(problem, "out", outputs.out, OutShape(problem), problem.query_offsets);
  CheckLse(problem, outputs.lse);
  if (!FusedRefusal(problem).empty()) {
    return AttentionBackwardReference(problem, inputs, out_gradient, gradients);
  }
  CheckGradients(problem, out_gradient, gradients);
  const PreparedMask mask(problem, PreparedMask::For::kBackward);
  const ProductPlan plan = PlanProducts(problem, unit);
  const AttentionInputs rounded = plan.rounds ? Rounded(inputs) : AttentionInputs{};
  const Tensor rounded_gradient = plan.rounds ? RoundedToBf16(out_gradient) : Tensor();
  const BackwardOperands operands{problem,
                                  plan.rounds ? rounded : inputs,
                                  mask,
                                  outputs,
                                  plan.rounds ? rounded_gradient : out_gradient,
                                  gradients,
                                  plan.unit};
  BackwardFused(operands);
  if (!gradients.gates.empty()) AddGateGradients(operands);
}

}  // namespace attention

void AttentionForward(const AttentionProblem& problem, const AttentionInputs& inputs,
                      AttentionOutputs& outputs) {
  ForwardOnUnit(SelectedBf16Unit(), problem, inputs, outputs);
}

void AttentionBackward(const AttentionProblem& problem, const AttentionInputs& inputs,
                       const AttentionOutputs& outputs, const Tensor& out_gradient,
                       AttentionGradients& gradients) {
  BackwardOnUnit(SelectedBf16Unit(), problem, inputs, outputs, out_gradient, gradients);
}

}  // namespace headlight
