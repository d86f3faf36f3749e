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
#include "headlight/kernels/bf16_rounding.h"

namespace headlight {
namespace {

using namespace attention;

// Rows of one head of a sequence whose first token is `first_token`, ragged or padded.
template <typename M, typename T>
M RowsOf(T& tensor, int64_t sequence, int64_t first_token, int64_t head) {
  if (tensor.empty()) return {};
  auto* data = tensor.template data<float>();
  if (tensor.shape().rank() == 4) {
    return {data + sequence * tensor.stride(0) + head * tensor.stride(2), tensor.stride(1),
            tensor.stride(3)};
  }
  return {data + first_token * tensor.stride(0) + head * tensor.stride(1), tensor.stride(0),
          tensor.stride(2)};
}

Matrix QueryRows(const Tensor& tensor, const SequenceRange& range, int64_t head) {
  return RowsOf<Matrix>(tensor, range.sequence, range.query_begin, head);
}
MutableMatrix QueryRows(Tensor& tensor, const SequenceRange& range, int64_t head) {
  return RowsOf<MutableMatrix>(tensor, range.sequence, range.query_begin, head);
}
Matrix KeyRows(const Tensor& tensor, const SequenceRange& range, int64_t head) {
  return RowsOf<Matrix>(tensor, range.sequence, range.key_begin, head);
}
MutableMatrix KeyRows(Tensor& tensor, const SequenceRange& range, int64_t head) {
  return RowsOf<MutableMatrix>(tensor, range.sequence, range.key_begin, head);
}

template <typename T>
auto LseOf(T& lse, int64_t first_token, int64_t head) {
  return lse.template data<float>() + head * lse.stride(0) + first_token;
}

RelativeTable TableOf(const Tensor& table, int64_t head) {
  if (table.empty()) return {};
  const int64_t table_head = table.size(0) == 1 ? 0 : head;
  return {{table.data<float>() + table_head * table.stride(0), table.stride(1), 1},
          (table.size(1) + 1) / 2};
}

// [queries, keys] of one head of a tensor [batch, heads, query_len, key_len].
template <typename M, typename T>
M ScoresOf(T& tensor, int64_t sequence, int64_t head) {
  if (tensor.empty()) return {};
  return {tensor.template data<float>() + sequence * tensor.stride(0) + head * tensor.stride(1),
          tensor.stride(2), tensor.stride(3)};
}

ScoreModifier ModifierOf(const AttentionProblem& problem, int64_t sequence, int64_t head) {
  const double scale = problem.EffectiveScale();
  ScoreModifier modifier;
  if (problem.softcap) {
    modifier.softcap_in = static_cast<float>(scale / *problem.softcap);
    modifier.softcap_out = static_cast<float>(*problem.softcap / scale);
  }
  const Bias& bias = problem.bias;
  if (!bias.alibi_slopes.empty()) {
    modifier.alibi = static_cast<float>(-bias.alibi_slopes[static_cast<size_t>(head)] / scale);
    modifier.shift = PlaceShift(problem, RangeOf(problem, sequence));
  }
  modifier.additive = ScoresOf<Matrix>(bias.additive, sequence, head);
  modifier.bias_factor = static_cast<float>(1 / scale);
  return modifier;
}

HeadProblem ProblemOf(const AttentionProblem& problem, const AttentionInputs& inputs,
                      const PreparedMask& mask, int64_t sequence, int64_t head) {
  const SequenceRange range = RangeOf(problem, sequence);
  const int64_t kv_head = head / (problem.heads / problem.kv_heads);
  HeadProblem made;
  made.queries = range.queries;
  made.keys = range.keys;
  made.head_dim = problem.head_dim;
  made.value_dim = problem.value_dim;
  made.query = QueryRows(inputs.query, range, head);
  made.key = KeyRows(inputs.key, range, kv_head);
  made.value = KeyRows(inputs.value, range, kv_head);
  made.scale = static_cast<float>(problem.EffectiveScale());
  made.intervals = mask.IntervalsOf(sequence);
  made.blocks = mask.BlocksOf(sequence, head);
  made.gate = static_cast<float>(problem.GateOf(head));
  if (problem.GateOf(head) == 0) made.intervals.limit = 0;
  const View<const uint8_t>& keep = problem.mask.keep;
  if (keep.data != nullptr) {
    made.keep = {keep.data + sequence * keep.strides[0] + head * keep.strides[1], keep.strides[2],
                 keep.strides[3]};
  }
  made.modifier = ModifierOf(problem, sequence, head);
  made.relative_keys = TableOf(problem.relative.keys, head);
  made.relative_values = TableOf(problem.relative.values, head);
  if (problem.dropout.rate > 0) {
    made.drops = true;
    made.dropout = DropoutStream(problem.dropout,
                                 problem.dropout.sample_ids[static_cast<size_t>(sequence)], head);
    made.dropout_factor = static_cast<float>(DropoutFactor(problem.dropout));
  }
  made.replaces_nonfinite = problem.nonfinite == NonFiniteScores::kReplaceByZero;
  return made;
}

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

// Rows of a share: a head whole if it can be, but so that there are some shares for every worker.
int64_t QueryRowsOfShares(const AttentionProblem& problem, int64_t queries, Bf16Unit unit) {
  constexpr int64_t kFewest = 96;  // packing a key block should pay
  const int64_t wanted = 4 * NumThreads();
  const int64_t tasks = std::max<int64_t>(problem.batch() * problem.heads, 1);
  int64_t parts = std::max((queries + kForwardRows - 1) / kForwardRows, wanted / tasks);
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
    const int64_t query_rows = split == Split::kHeads
                                   ? std::max<int64_t>(range.queries, 1)
                                   : QueryRowsOfShares(problem, range.queries, unit);
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

// A sequence of few queries against a long cache: its key/value heads and splits are shared out.
struct Decoding {
  int64_t sequence;
  int64_t splits;
  int64_t first_share;  // of kv_heads * splits
  float* sums;          // [heads][splits][SplitFloats]
};

Bf16Matrix Bf16Rows(const Tensor& tensor, const SequenceRange& range, int64_t head) {
  const bool padded = tensor.shape().rank() == 4;
  const int64_t first = padded ? range.sequence : range.key_begin;
  const BFloat16* data =
      tensor.data<BFloat16>() + first * tensor.stride(0) + head * tensor.stride(padded ? 2 : 1);
  return {reinterpret_cast<const uint16_t*>(data), tensor.stride(padded ? 1 : 0)};
}

class DecodingWork {
 public:
  // `stored`: the tensors in bf16, whose keys and values are read; or null.
  DecodingWork(const AttentionProblem& problem, const AttentionInputs& inputs,
               const AttentionInputs* stored, const PreparedMask& mask)
      : problem_(problem), inputs_(inputs), stored_(stored), mask_(mask) {
    int64_t floats = 0;
    for (int64_t s = 0; s < problem.batch(); ++s) {
      if (!DecodesInPlace(problem, stored == nullptr ? inputs : *stored, s)) continue;
      const HeadProblem head = Head(s, 0);
      const int64_t limit = mask.IntervalsOf(s).limit;
      const int64_t splits = std::max<int64_t>(BlockCount(limit, kDecodingKeys), 1);
      sequences_.push_back({s, splits, shares_, nullptr});
      shares_ += problem.kv_heads * splits;
      floats += problem.heads * splits * SplitFloats(head);
    }
    if (floats == 0) return;
    sums_ = Tensor::Uninitialized({floats}, DType::kF32, MemoryTag::kWorkspace);
    float* at = sums_.data<float>();
    for (Decoding& each : sequences_) {
      each.sums = at;
      at += problem.heads * each.splits * SplitFloats(Head(each.sequence, 0));
    }
  }

  int64_t shares() const { return shares_; }
  int64_t merges() const { return static_cast<int64_t>(sequences_.size()) * problem_.heads; }
  bool Has(int64_t sequence) const {
    return std::any_of(sequences_.begin(), sequences_.end(),
                       [&](const Decoding& each) { return each.sequence == sequence; });
  }

  // Returns the number of replaced scores. The heads of a group follow each other, so that all but
  // the first find the split's keys and values in the cache.
  int64_t RunShare(int64_t number) const {
    const auto after = std::upper_bound(
        sequences_.begin(), sequences_.end(), number,
        [](int64_t share, const Decoding& each) { return share < each.first_share; });
    const Decoding& each = *std::prev(after);
    const int64_t share = number - each.first_share;
    const int64_t split = share % each.splits, group = problem_.heads / problem_.kv_heads;
    int64_t replaced = 0;
    for (int64_t h = 0; h < group; ++h) {
      const int64_t head_number = share / each.splits * group + h;
      const HeadProblem head = Head(each.sequence, head_number);
      replaced += FusedForwardSplit(
          head, split, each.sums + (head_number * each.splits + split) * SplitFloats(head));
    }
    return replaced;
  }

  void Merge(int64_t number, AttentionOutputs& outputs, Tensor& lse) const {
    const Decoding& each = sequences_[static_cast<size_t>(number / problem_.heads)];
    const int64_t head_number = number % problem_.heads;
    const SequenceRange range = RangeOf(problem_, each.sequence);
    const HeadProblem head = Head(each.sequence, head_number);
    ForwardTask task;
    task.end = range.queries;
    task.out = QueryRows(outputs.out, range, head_number);
    if (!lse.empty()) task.lse = LseOf(lse, range.query_begin, head_number);
    FusedMergeSplits(head, task, each.sums + head_number * each.splits * SplitFloats(head),
                     each.splits);
  }

 private:
  HeadProblem Head(int64_t sequence, int64_t head) const {
    HeadProblem made = ProblemOf(problem_, inputs_, mask_, sequence, head);
    if (stored_ != nullptr) {
      const int64_t kv_head = head / (problem_.heads / problem_.kv_heads);
      const SequenceRange range = RangeOf(problem_, sequence);
      if (range.keys == 0) return made;  // there may be no tensor
      made.key_bf16 = Bf16Rows(stored_->key, range, kv_head);
      made.value_bf16 = Bf16Rows(stored_->value, range, kv_head);
    }
    return made;
  }

  const AttentionProblem& problem_;
  const AttentionInputs& inputs_;
  const AttentionInputs* stored_;
  const PreparedMask& mask_;
  std::vector<Decoding> sequences_;
  int64_t shares_ = 0;
  Tensor sums_;
};

struct ForwardOperands {
  const AttentionProblem& problem;
  const AttentionInputs& inputs;
  const PreparedMask& mask;
  Bf16Unit unit;
  AttentionOutputs& outputs;
  Tensor& lse;
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
    replaced += FusedForward(made, task);
  }
  return replaced;
}

void ForwardFused(const ForwardOperands& in, const AttentionInputs* stored, bool rounds) {
  const DecodingWork decoding(in.problem, in.inputs, stored, in.mask);
  std::vector<Share> shares =
      SplitIntoShares(in.problem, in.mask, in.problem.heads, Split::kHeadsAndQueries, in.unit);
  std::erase_if(shares, [&](const Share& share) { return decoding.Has(share.sequence); });
  const auto whole = static_cast<int64_t>(shares.size());
  const AttentionInputs rounded = rounds && whole > 0 ? Rounded(in.inputs) : AttentionInputs{};
  const ForwardOperands operands{
      in.problem, rounds ? rounded : in.inputs, in.mask, in.unit, in.outputs, in.lse};
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

// One head of one sequence that somebody looks at.
struct ProbeJob {
  int64_t sequence, head;
  ProbeTask task;
};

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

std::vector<ProbeJob> ProbeJobs(const AttentionProblem& problem, AttentionOutputs& outputs) {
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
      ProbeTask task;
      task.statistics = StatisticsOf(statistics, static_cast<int64_t>(slot), range.query_begin);
      if (!statistics.key_set.empty()) task.key_set = statistics.key_set.data() + range.key_begin;
      jobs.push_back({s, statistics.heads[slot], task});
    }
  }
  return jobs;
}

void ProbeFused(const AttentionProblem& problem, const AttentionInputs& inputs,
                const PreparedMask& mask, AttentionOutputs& outputs, Tensor& lse) {
  const std::vector<ProbeJob> jobs = ProbeJobs(problem, outputs);
  ParallelFor(static_cast<int64_t>(jobs.size()), [&](int64_t number, int) {
    const ProbeJob& job = jobs[static_cast<size_t>(number)];
    const SequenceRange range = RangeOf(problem, job.sequence);
    if (range.queries == 0) return;
    const HeadProblem head = ProblemOf(problem, inputs, mask, job.sequence, job.head);
    ProbeTask task = job.task;
    task.lse = LseOf(lse, range.query_begin, job.head);
    for (task.begin = 0; task.begin < range.queries; task.begin = task.end) {
      task.end = std::min(task.begin + kForwardRows, range.queries);
      FusedProbe(head, task);
    }
  });
}

// Gradients of the tables of relative positions: each head of each sequence sums its own, then they
// are added in the order of sequences and heads. A wave of sequences at a time bounds the memory.
class TableGradients {
 public:
  TableGradients(const AttentionProblem& problem, AttentionGradients& gradients)
      : heads_(problem.heads) {
    for (Tensor* total : {&gradients.relative_keys, &gradients.relative_values}) {
      if (total->empty()) continue;
      tables_.push_back({total, total->size(1) * total->size(2), {}});
      sequence_floats_ += heads_ * tables_.back().floats;
    }
  }

  // Sequences of one wave.
  int64_t WaveOf(int64_t batch) const {
    constexpr int64_t kMostFloats = 4 << 20;  // 16 MiB
    if (sequence_floats_ == 0) return batch;
    return std::clamp<int64_t>(kMostFloats / sequence_floats_, 1, std::max<int64_t>(batch, 1));
  }

  void BeginWave(int64_t sequences) {
    sequences_ = sequences;
    for (Table& table : tables_) {
      table.sums =
          Tensor::Zeros({sequences * heads_, table.floats}, DType::kF32, MemoryTag::kWorkspace);
    }
  }

  // The sums of one head of the wave's sequence; none when `total` is not a wanted gradient.
  MutableMatrix Of(const Tensor& total, int64_t sequence, int64_t head) {
    for (Table& table : tables_) {
      if (table.total != &total) continue;
      float* sums = table.sums.data<float>() + (sequence * heads_ + head) * table.floats;
      return {sums, total.size(2), 1};
    }
    return {};
  }

  void EndWave() {
    for (Table& table : tables_) {
      Tensor& total = *table.total;
      const int64_t width = total.size(2);
      ParallelFor(total.size(1), [&](int64_t row, int) {
        for (int64_t s = 0; s < sequences_ * heads_; ++s) {
          const int64_t head = total.size(0) == 1 ? 0 : s % heads_;
          const float* from = table.sums.data<float>() + s * table.floats + row * width;
          float* to = total.data<float>() + head * total.stride(0) + row * total.stride(1);
          for (int64_t c = 0; c < width; ++c) to[c] += from[c];
        }
      });
    }
  }

 private:
  struct Table {
    Tensor* total;
    int64_t floats;  // of one head
    Tensor sums;     // [wave * heads, floats]
  };
  int64_t heads_, sequences_ = 0, sequence_floats_ = 0;
  std::vector<Table> tables_;
};

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

bool MayDecode(const AttentionProblem& problem, int64_t sequence) {
  return RangeOf(problem, sequence).queries <= kDecodingQueries && !problem.mask.blocks &&
         problem.relative.keys.empty() && problem.relative.values.empty();
}

bool DecodesInPlace(const AttentionProblem& problem, const AttentionInputs& inputs,
                    int64_t sequence) {
  const auto adjacent = [](const Tensor& tensor) {
    return tensor.empty() || tensor.stride(tensor.shape().rank() - 1) == 1;
  };
  return MayDecode(problem, sequence) && RangeOf(problem, sequence).queries > 0 &&
         adjacent(inputs.key) && adjacent(inputs.value) &&
         (inputs.key.empty() || inputs.key.dtype() != DType::kF16);
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
  ForwardFused({problem, inputs, mask, plan.unit, outputs, lse}, stored, plan.rounds);
  if (probed) ProbeFused(problem, inputs, mask, outputs, lse);
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
