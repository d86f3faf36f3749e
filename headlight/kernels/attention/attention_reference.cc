// Attention as the formulas say it: plain loops, sums in double, one query at a time. It shares no
// helper with the fused kernels, and is kept for ever as what they are tested against. It is also
// the f64 path.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_internal.h"
#include "headlight/kernels/attention/attention_storage.h"
#include "headlight/kernels/half_formats.h"

namespace headlight {
namespace {

using namespace attention;

using attention::RangeOf;
using attention::SequenceRange;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t TableRow(int64_t table_rows, int64_t query, int64_t key) {
  const int64_t limit = (table_rows - 1) / 2;
  return std::clamp(key - query, -limit, limit) + limit;
}

bool BlockListKeeps(const AttentionProblem& problem, int64_t sequence, int64_t head, int64_t query,
                    int64_t key) {
  const Mask::BlockList& blocks = *problem.mask.blocks;
  size_t row = 0;  // of this sequence, head and query block
  for (int64_t s = 0; s <= sequence; ++s) {
    const int64_t queries = RangeOf(problem, s).queries;
    const int64_t rows = (queries + blocks.query_block - 1) / blocks.query_block;
    if (s < sequence) {
      row += static_cast<size_t>(blocks.heads * rows);
    } else {
      row +=
          static_cast<size_t>((blocks.heads == 1 ? 0 : head) * rows + query / blocks.query_block);
    }
  }
  for (int64_t at = blocks.offsets[row]; at < blocks.offsets[row + 1]; ++at) {
    if (blocks.key_blocks[static_cast<size_t>(at)] == key / blocks.key_block) return true;
  }
  return false;
}

bool Keeps(const AttentionProblem& problem, int64_t sequence, int64_t head, int64_t query,
           int64_t key) {
  const Mask& mask = problem.mask;
  const SequenceRange range = RangeOf(problem, sequence);
  const int64_t place =
      mask.causal == Mask::Causal::kAlignedToEnd ? query + range.keys - range.queries : query;
  if (mask.causal != Mask::Causal::kNone && key > place) return false;
  if (mask.window && (place - key > mask.window->left || key - place > mask.window->right)) {
    return false;
  }
  if (!mask.key_lengths.empty() && key >= mask.key_lengths[static_cast<size_t>(sequence)]) {
    return false;
  }
  if (!mask.query_documents.empty() &&
      mask.query_documents[static_cast<size_t>(range.query_begin + query)] !=
          mask.key_documents[static_cast<size_t>(range.key_begin + key)]) {
    return false;
  }
  if (mask.blocks && !BlockListKeeps(problem, sequence, head, query, key)) return false;
  return mask.keep.data == nullptr || mask.keep(sequence, head, query, key) != 0;
}

// Whether an additive bias masks.
template <typename T>
bool BiasKeeps(const View<const T>& bias, int64_t sequence, int64_t head, int64_t query,
               int64_t key) {
  return bias.data == nullptr ||
         bias(sequence, head, query, key) != -std::numeric_limits<T>::infinity();
}

// A tensor of tokens, ragged or padded: element (row i of the sequence, head, column).
template <typename T>
struct Rows {
  using Value = std::remove_const_t<T>;
  using Source = std::conditional_t<std::is_const_v<T>, const Tensor, Tensor>;
  static Rows OfQueries(Source& tensor) { return Rows(tensor, &SequenceRange::query_begin); }
  static Rows OfKeys(Source& tensor) { return Rows(tensor, &SequenceRange::key_begin); }

  Rows(Source& tensor, int64_t SequenceRange::*begin) : first_token(begin) {
    if (!tensor.empty()) view = tensor.template view<Value>();
  }
  T& operator()(const SequenceRange& range, int64_t i, int64_t head, int64_t c) const {
    return view.shape.rank() == 4 ? view(range.sequence, i, head, c)
                                  : view(range.*first_token + i, head, c);
  }

  View<T> view;
  int64_t SequenceRange::*first_token;
};

// The tensors of a problem, typed, with the tables as pointers.
template <typename T>
struct Operands {
  Operands(const AttentionProblem& p, const AttentionInputs& inputs)
      : problem(p),
        query(Rows<const T>::OfQueries(inputs.query)),
        key(Rows<const T>::OfKeys(inputs.key)),
        value(Rows<const T>::OfKeys(inputs.value)),
        scale(p.EffectiveScale()),
        group(p.heads / p.kv_heads) {
    if (!p.relative.keys.empty()) relative_keys = p.relative.keys.view<T>();
    if (!p.relative.values.empty()) relative_values = p.relative.values.view<T>();
    if (!p.bias.additive.empty()) bias = p.bias.additive.view<T>();
  }

  static int64_t TableHead(const View<const T>& table, int64_t head) {
    return table.size(0) == 1 ? 0 : head;
  }

  const AttentionProblem& problem;
  Rows<const T> query, key, value;
  View<const T> relative_keys, relative_values;  // data == nullptr: none
  View<const T> bias;                            // the same
  double scale;
  int64_t group;
};

// One row of scores and weights, and how they came about.
struct Row {
  std::vector<uint8_t> kept;      // 1: a key that counts
  std::vector<uint8_t> replaced;  // 1: its score was non-finite and counts as 0
  std::vector<double> weight;     // 0 where not kept
  std::vector<double> slope;      // d softcap / d score
  std::vector<double> factor;     // of dropout: 0, or 1 / (1 - rate)
  double lse = -kInfinity;
  int64_t replaced_count = 0;
};

template <typename T>
double Score(const Operands<T>& in, const SequenceRange& range, int64_t head, int64_t i,
             int64_t j) {
  double sum = 0;
  for (int64_t c = 0; c < in.problem.head_dim; ++c) {
    double key = static_cast<double>(in.key(range, j, head / in.group, c));
    const View<const T>& table = in.relative_keys;
    if (table.data != nullptr) {
      key +=
          static_cast<double>(table(in.TableHead(table, head), TableRow(table.size(1), i, j), c));
    }
    sum += static_cast<double>(in.query(range, i, head, c)) * key;
  }
  return in.scale * sum;
}

double Softcap(const AttentionProblem& problem, double score) {
  return problem.softcap ? *problem.softcap * std::tanh(score / *problem.softcap) : score;
}

template <typename T>
double BiasAt(const Operands<T>& in, int64_t sequence, int64_t head, int64_t i, int64_t j) {
  double sum = 0;
  const std::vector<double>& slopes = in.problem.bias.alibi_slopes;
  if (!slopes.empty()) {
    const SequenceRange range = RangeOf(in.problem, sequence);
    const bool to_end = in.problem.mask.causal == Mask::Causal::kAlignedToEnd;
    const int64_t place = to_end ? i + range.keys - range.queries : i;
    sum -= slopes[static_cast<size_t>(head)] * static_cast<double>(std::abs(j - place));
  }
  if (in.bias.data != nullptr) sum += static_cast<double>(in.bias(sequence, head, i, j));
  return sum;
}

template <typename T>
void FillRow(const Operands<T>& in, int64_t sequence, int64_t head, int64_t i, Row& row) {
  const SequenceRange range = RangeOf(in.problem, sequence);
  const size_t keys = static_cast<size_t>(range.keys);
  row.kept.assign(keys, 0);
  row.replaced.assign(keys, 0);
  row.weight.assign(keys, 0);
  row.factor.assign(keys, 1);
  row.slope.assign(keys, 1);
  row.replaced_count = 0;
  double largest = -kInfinity;
  for (size_t j = 0; j < keys && in.problem.GateOf(head) != 0; ++j) {
    const int64_t key = static_cast<int64_t>(j);
    if (!Keeps(in.problem, sequence, head, i, key)) continue;
    if (!BiasKeeps(in.bias, sequence, head, i, key)) continue;
    row.kept[j] = 1;
    const double capped = Softcap(in.problem, Score(in, range, head, i, key));
    if (in.problem.softcap) {
      const double t = capped / *in.problem.softcap;
      row.slope[j] = 1 - t * t;
    }
    row.weight[j] = capped + BiasAt(in, sequence, head, i, key);
    if (in.problem.nonfinite == NonFiniteScores::kReplaceByZero && !std::isfinite(row.weight[j])) {
      row.replaced[j] = 1;
      row.weight[j] = 0;
      ++row.replaced_count;
    }
    largest = std::max(largest, row.weight[j]);  // false for NaN: a NaN is carried by exp
  }
  if (largest == -kInfinity) largest = 0;
  double sum = 0;
  for (size_t j = 0; j < keys; ++j) {
    if (row.kept[j] == 0) continue;
    row.weight[j] = std::exp(row.weight[j] - largest);
    sum += row.weight[j];
  }
  row.lse = largest + std::log(sum);
  if (sum == 0) {  // nothing to attend to
    std::fill(row.kept.begin(), row.kept.end(), uint8_t{0});
    row.lse = -kInfinity;
    sum = 1;
  }
  for (size_t j = 0; j < keys; ++j) {
    if (row.kept[j] != 0) row.weight[j] /= sum;
  }
  if (in.problem.dropout.rate > 0) {
    const WeightDropout& dropout = in.problem.dropout;
    const DropoutStream stream(dropout, dropout.sample_ids[static_cast<size_t>(sequence)], head);
    for (size_t j = 0; j < keys; ++j) {
      const bool keeps = DropoutKeepsWeight(stream, i, static_cast<int64_t>(j));
      row.factor[j] = keeps ? DropoutFactor(dropout) : 0;
    }
  }
}

// value(j) + relative value of j - i, column c.
template <typename T>
double ValueAt(const Operands<T>& in, const SequenceRange& range, int64_t head, int64_t i,
               int64_t j, int64_t c) {
  double value = static_cast<double>(in.value(range, j, head / in.group, c));
  const View<const T>& table = in.relative_values;
  if (table.data != nullptr) {
    value +=
        static_cast<double>(table(in.TableHead(table, head), TableRow(table.size(1), i, j), c));
  }
  return value;
}

// The keys of the largest weights of query token t.
template <typename T>
void WriteLargest(HeadStatistics& statistics, int64_t slot, int64_t t, const Row& row) {
  if (statistics.top == 0) return;
  std::vector<int32_t> keys;
  for (size_t j = 0; j < row.weight.size(); ++j) {
    if (row.kept[j] != 0 && row.weight[j] > 0) keys.push_back(static_cast<int32_t>(j));
  }
  std::stable_sort(keys.begin(), keys.end(), [&](int32_t a, int32_t b) {
    return row.weight[static_cast<size_t>(a)] > row.weight[static_cast<size_t>(b)];
  });
  for (int64_t place = 0; place < statistics.top; ++place) {
    const size_t at = static_cast<size_t>(place);
    const bool there = at < keys.size();
    statistics.top_keys.view<int32_t>()(slot, t, place) = there ? keys[at] : -1;
    statistics.top_weights.view<T>()(slot, t, place) =
        there ? static_cast<T>(row.weight[static_cast<size_t>(keys[at])]) : T{0};
  }
}

template <typename T>
void WriteStatistics(const AttentionProblem& problem, HeadStatistics& statistics, size_t slot,
                     int64_t sequence, int64_t i, const Row& row) {
  const SequenceRange range = RangeOf(problem, sequence);
  double entropy = 0, distance = 0, absolute = 0, largest = 0, mass = 0;
  int32_t largest_key = -1;
  for (int64_t j = 0; j < range.keys; ++j) {
    if (row.kept[static_cast<size_t>(j)] == 0) continue;
    const double weight = row.weight[static_cast<size_t>(j)];
    if (weight != 0) entropy -= weight * std::log(weight);
    distance += weight * static_cast<double>(j - i);
    absolute += weight * static_cast<double>(std::abs(j - i));
    if (largest_key < 0 || weight > largest) {
      largest = weight;
      largest_key = static_cast<int32_t>(j);
    }
    if (!statistics.key_set.empty() &&
        statistics.key_set[static_cast<size_t>(range.key_begin + j)] != 0) {
      mass += weight;
    }
  }
  const int64_t h = static_cast<int64_t>(slot), t = range.query_begin + i;
  statistics.entropy.view<T>()(h, t) = static_cast<T>(entropy);
  statistics.distance.view<T>()(h, t) = static_cast<T>(distance);
  statistics.absolute_distance.view<T>()(h, t) = static_cast<T>(absolute);
  statistics.largest_weight.view<T>()(h, t) = static_cast<T>(largest);
  statistics.largest_key.view<int32_t>()(h, t) = largest_key;
  if (!statistics.set_mass.empty()) statistics.set_mass.view<T>()(h, t) = static_cast<T>(mass);
  WriteLargest<T>(statistics, h, t, row);
}

// Writes the weights and statistics that the caller asked for.
template <typename T>
void WriteProbes(const AttentionProblem& problem, AttentionOutputs& outputs, int64_t sequence,
                 int64_t head, int64_t i, const Row& row) {
  const SequenceRange range = RangeOf(problem, sequence);
  for (HeadWeights& wanted : outputs.weights) {
    if (wanted.sequence != sequence || wanted.head != head) continue;
    const View<T> weights = wanted.weights.view<T>();
    for (int64_t j = 0; j < range.keys; ++j) {
      weights(i, j) = static_cast<T>(row.weight[static_cast<size_t>(j)]);
    }
  }
  if (!outputs.statistics) return;
  HeadStatistics& statistics = *outputs.statistics;
  for (size_t slot = 0; slot < statistics.heads.size(); ++slot) {
    if (statistics.heads[slot] == head) {
      WriteStatistics<T>(problem, statistics, slot, sequence, i, row);
    }
  }
}

// out(i) before the gate, by column.
template <typename T>
std::vector<double> Attended(const Operands<T>& in, const SequenceRange& range, int64_t head,
                             int64_t i, const Row& row) {
  std::vector<double> sums(static_cast<size_t>(in.problem.value_dim), 0);
  for (int64_t c = 0; c < in.problem.value_dim; ++c) {
    for (int64_t j = 0; j < range.keys; ++j) {
      const size_t key = static_cast<size_t>(j);
      if (row.kept[key] == 0 || row.factor[key] == 0) continue;
      sums[static_cast<size_t>(c)] +=
          row.weight[key] * row.factor[key] * ValueAt(in, range, head, i, j, c);
    }
  }
  return sums;
}

template <typename T>
int64_t ForwardHead(const Operands<T>& in, AttentionOutputs& outputs, int64_t sequence,
                    int64_t head) {
  const SequenceRange range = RangeOf(in.problem, sequence);
  Row row;
  int64_t replaced = 0;
  for (int64_t i = 0; i < range.queries; ++i) {
    FillRow(in, sequence, head, i, row);
    replaced += row.replaced_count;
    const Rows<T> out = Rows<T>::OfQueries(outputs.out);
    const std::vector<double> attended = Attended(in, range, head, i, row);
    for (int64_t c = 0; c < in.problem.value_dim; ++c) {
      out(range, i, head, c) =
          static_cast<T>(in.problem.GateOf(head) * attended[static_cast<size_t>(c)]);
    }
    if (!outputs.lse.empty()) {
      outputs.lse.view<T>()(head, range.query_begin + i) = static_cast<T>(row.lse);
    }
    WriteProbes<T>(in.problem, outputs, sequence, head, i, row);
  }
  return replaced;
}

template <typename T>
void Forward(const AttentionProblem& problem, const AttentionInputs& inputs,
             AttentionOutputs& outputs) {
  const Operands<T> in(problem, inputs);
  const int64_t tasks = problem.batch() * problem.heads;
  std::vector<int64_t> replaced(static_cast<size_t>(tasks), 0);
  ParallelFor(tasks, [&](int64_t task, int) {
    replaced[static_cast<size_t>(task)] =
        ForwardHead<T>(in, outputs, task / problem.heads, task % problem.heads);
  });
  for (int64_t count : replaced) outputs.replaced_scores += count;
}

// Sums of the gradients of one key/value head of one sequence, and of the tables, in double.
struct Sums {
  std::vector<double> key, value;                      // [keys, width]
  std::vector<double> relative_keys, relative_values;  // [table rows, width]
};

// d score(i, j) for each key of row i: P (dP - D), D = sum of P dP. Each line inverts one of
// ForwardHead and FillRow.
template <typename T>
std::vector<double> ScoreGradients(const Operands<T>& in, const Rows<const T>& out_gradient,
                                   int64_t sequence, int64_t head, int64_t i, const Row& row) {
  const SequenceRange range = RangeOf(in.problem, sequence);
  std::vector<double> gradient(row.weight.size(), 0);
  double mean = 0;
  for (int64_t j = 0; j < range.keys; ++j) {
    const size_t key = static_cast<size_t>(j);
    if (row.kept[key] == 0 || row.factor[key] == 0) continue;
    for (int64_t c = 0; c < in.problem.value_dim; ++c) {
      gradient[key] +=
          static_cast<double>(out_gradient(range, i, head, c)) * ValueAt(in, range, head, i, j, c);
    }
    gradient[key] *= row.factor[key] * in.problem.GateOf(head);
    mean += row.weight[key] * gradient[key];
  }
  for (size_t j = 0; j < gradient.size(); ++j) {
    const bool passes = row.kept[j] != 0 && row.replaced[j] == 0;
    gradient[j] = passes ? row.weight[j] * (gradient[j] - mean) : 0;
  }
  return gradient;
}

template <typename T>
void BackwardRow(const Operands<T>& in, const Rows<const T>& out_gradient, int64_t sequence,
                 int64_t head, int64_t i, const Row& row, AttentionGradients& gradients,
                 Sums& sums) {
  const SequenceRange range = RangeOf(in.problem, sequence);
  const int64_t head_dim = in.problem.head_dim, value_dim = in.problem.value_dim;
  const std::vector<double> score = ScoreGradients(in, out_gradient, sequence, head, i, row);
  std::vector<double> query(static_cast<size_t>(head_dim), 0);
  for (int64_t j = 0; j < range.keys; ++j) {
    const size_t key = static_cast<size_t>(j);
    if (row.kept[key] == 0) continue;
    if (!gradients.bias.empty()) {
      gradients.bias.view<T>()(sequence, head, i, j) = static_cast<T>(score[key]);
    }
    const double score_gradient = in.scale * row.slope[key] * score[key];
    for (int64_t c = 0; c < head_dim; ++c) {
      if (row.replaced[key] != 0) break;
      double factor = static_cast<double>(in.key(range, j, head / in.group, c));
      const double q = static_cast<double>(in.query(range, i, head, c));
      const View<const T>& table = in.relative_keys;
      if (table.data != nullptr) {
        const int64_t r = TableRow(table.size(1), i, j);
        factor += static_cast<double>(table(in.TableHead(table, head), r, c));
        sums.relative_keys[static_cast<size_t>(r * head_dim + c)] += score_gradient * q;
      }
      query[static_cast<size_t>(c)] += score_gradient * factor;
      sums.key[static_cast<size_t>(j * head_dim + c)] += score_gradient * q;
    }
    if (row.factor[key] == 0) continue;
    const double weight = row.weight[key] * row.factor[key] * in.problem.GateOf(head);
    for (int64_t c = 0; c < value_dim; ++c) {
      const double g = static_cast<double>(out_gradient(range, i, head, c));
      sums.value[static_cast<size_t>(j * value_dim + c)] += weight * g;
      if (in.relative_values.data == nullptr) continue;
      const int64_t r = TableRow(in.relative_values.size(1), i, j);
      sums.relative_values[static_cast<size_t>(r * value_dim + c)] += weight * g;
    }
  }
  const Rows<T> query_gradient = Rows<T>::OfQueries(gradients.query);
  for (int64_t c = 0; c < head_dim; ++c) {
    query_gradient(range, i, head, c) = static_cast<T>(query[static_cast<size_t>(c)]);
  }
}

template <typename T>
void AddTable(const std::vector<double>& sums, int64_t head, Tensor& gradient) {
  if (gradient.empty()) return;
  const View<T> table = gradient.view<T>();
  const int64_t h = table.size(0) == 1 ? 0 : head;
  for (int64_t r = 0; r < table.size(1); ++r) {
    for (int64_t c = 0; c < table.size(2); ++c) {
      table(h, r, c) += static_cast<T>(sums[static_cast<size_t>(r * table.size(2) + c)]);
    }
  }
}

// All query heads of one key/value head of one sequence.
template <typename T>
void BackwardGroup(const Operands<T>& in, const Rows<const T>& out_gradient, int64_t sequence,
                   int64_t kv_head, AttentionGradients& gradients) {
  const AttentionProblem& problem = in.problem;
  const SequenceRange range = RangeOf(problem, sequence);
  Sums sums;
  sums.key.assign(static_cast<size_t>(range.keys * problem.head_dim), 0);
  sums.value.assign(static_cast<size_t>(range.keys * problem.value_dim), 0);
  Row row;
  for (int64_t head = kv_head * in.group; head < (kv_head + 1) * in.group; ++head) {
    sums.relative_keys.assign(static_cast<size_t>(problem.relative.keys.elements()), 0);
    sums.relative_values.assign(static_cast<size_t>(problem.relative.values.elements()), 0);
    for (int64_t i = 0; i < range.queries; ++i) {
      FillRow(in, sequence, head, i, row);
      BackwardRow(in, out_gradient, sequence, head, i, row, gradients, sums);
    }
    AddTable<T>(sums.relative_keys, head, gradients.relative_keys);
    AddTable<T>(sums.relative_values, head, gradients.relative_values);
  }
  const Rows<T> key_gradient = Rows<T>::OfKeys(gradients.key);
  const Rows<T> value_gradient = Rows<T>::OfKeys(gradients.value);
  for (int64_t j = 0; j < range.keys; ++j) {
    for (int64_t c = 0; c < problem.head_dim; ++c) {
      key_gradient(range, j, kv_head, c) =
          static_cast<T>(sums.key[static_cast<size_t>(j * problem.head_dim + c)]);
    }
    for (int64_t c = 0; c < problem.value_dim; ++c) {
      value_gradient(range, j, kv_head, c) =
          static_cast<T>(sums.value[static_cast<size_t>(j * problem.value_dim + c)]);
    }
  }
}

// Added to each head's gradient of its gate: dO . O, where O is that of an open head.
template <typename T>
void AddGateGradients(const AttentionProblem& problem, const AttentionInputs& inputs,
                      const Rows<const T>& out_gradient, Tensor& gates) {
  AttentionProblem opened = problem;
  opened.head_gates.clear();
  const Operands<T> in(opened, inputs);
  Row row;
  for (int64_t s = 0; s < problem.batch(); ++s) {
    const SequenceRange range = RangeOf(problem, s);
    for (int64_t h = 0; h < problem.heads; ++h) {
      double sum = 0;
      for (int64_t i = 0; i < range.queries; ++i) {
        FillRow(in, s, h, i, row);
        if (row.lse == -kInfinity) continue;
        const std::vector<double> attended = Attended(in, range, h, i, row);
        for (int64_t c = 0; c < problem.value_dim; ++c) {
          sum +=
              static_cast<double>(out_gradient(range, i, h, c)) * attended[static_cast<size_t>(c)];
        }
      }
      gates.view<T>()(h) += static_cast<T>(sum);
    }
  }
}

template <typename T>
void Backward(const AttentionProblem& problem, const AttentionInputs& inputs,
              const Tensor& out_gradient, AttentionGradients& gradients) {
  const Operands<T> in(problem, inputs);
  attention::ZeroBiasGradient(gradients);
  const Rows<const T> out = Rows<const T>::OfQueries(out_gradient);
  const int64_t tasks = problem.batch() * problem.kv_heads;
  const auto run = [&](int64_t task, int) {
    BackwardGroup<T>(in, out, task / problem.kv_heads, task % problem.kv_heads, gradients);
  };
  // Table gradients are sums over sequences: added one after another, in order.
  if (gradients.relative_keys.empty() && gradients.relative_values.empty()) {
    ParallelFor(tasks, run);
  } else {
    for (int64_t task = 0; task < tasks; ++task) run(task, 0);
  }
  if (!gradients.gates.empty()) AddGateGradients<T>(problem, inputs, out, gradients.gates);
}

template <typename T>
std::optional<ScorePosition> FindNonFinite(const AttentionProblem& problem,
                                           const AttentionInputs& inputs) {
  const Operands<T> in(problem, inputs);
  for (int64_t s = 0; s < problem.batch(); ++s) {
    const SequenceRange range = RangeOf(problem, s);
    for (int64_t h = 0; h < problem.heads; ++h) {
      if (problem.GateOf(h) == 0) continue;
      for (int64_t i = 0; i < range.queries; ++i) {
        for (int64_t j = 0; j < range.keys; ++j) {
          if (!Keeps(problem, s, h, i, j) || !BiasKeeps(in.bias, s, h, i, j)) continue;
          const double score = Softcap(problem, Score(in, range, h, i, j)) + BiasAt(in, s, h, i, j);
          if (!std::isfinite(static_cast<T>(score))) {
            return ScorePosition{s, h, i, j};
          }
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace

void AttentionForwardReference(const AttentionProblem& problem, const AttentionInputs& inputs,
                               AttentionOutputs& outputs) {
  if (IsStorage(problem.dtype)) {
    return ForwardByF32(problem, inputs, Copy::kAll, outputs,
                        [](const AttentionProblem& wide, const AttentionInputs& wide_inputs,
                           const AttentionInputs&, AttentionOutputs& wide_outputs) {
                          AttentionForwardReference(wide, wide_inputs, wide_outputs);
                        });
  }
  attention::CheckInputs(problem, inputs);
  attention::PrepareOutputs(problem, outputs);
  DispatchFloat(problem.dtype, [&]<typename T>() { return Forward<T>(problem, inputs, outputs); });
}

void AttentionBackwardReference(const AttentionProblem& problem, const AttentionInputs& inputs,
                                const Tensor& out_gradient, AttentionGradients& gradients) {
  if (IsStorage(problem.dtype)) {
    return BackwardByF32(
        problem, inputs, {}, out_gradient, gradients,
        [](const AttentionProblem& wide, const AttentionInputs& wide_inputs,
           const AttentionOutputs&, const Tensor& wide_gradient, AttentionGradients& to) {
          AttentionBackwardReference(wide, wide_inputs, wide_gradient, to);
        });
  }
  attention::CheckInputs(problem, inputs);
  attention::CheckGradients(problem, out_gradient, gradients);
  DispatchFloat(problem.dtype, [&]<typename T>() {
    return Backward<T>(problem, inputs, out_gradient, gradients);
  });
}

std::optional<ScorePosition> FindNonFiniteScore(const AttentionProblem& problem,
                                                const AttentionInputs& inputs) {
  attention::CheckInputs(problem, inputs);
  if (IsStorage(problem.dtype)) {
    return FindNonFiniteScore(WideProblem(problem), WideInputs(problem, inputs));
  }
  return DispatchFloat(problem.dtype,
                       [&]<typename T>() { return FindNonFinite<T>(problem, inputs); });
}

}  // namespace headlight
