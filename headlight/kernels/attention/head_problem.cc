#include "headlight/kernels/attention/head_problem.h"

namespace headlight::attention {
namespace {

RelativeTable TableOf(const Tensor& table, int64_t head) {
  if (table.empty()) return {};
  const int64_t table_head = table.size(0) == 1 ? 0 : head;
  return {{table.data<float>() + table_head * table.stride(0), table.stride(1), 1},
          (table.size(1) + 1) / 2};
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

}  // namespace

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

}  // namespace headlight::attention
