// Scores that the mask hides become -inf, their weights are 0. Where a value, key, query or output
// gradient holds NaN or infinity, 0 times it would be NaN: such rows are left out of the products
// and added only where their weight counts. Each line of the backward pass inverts one of the
// forward pass.
#include "headlight/kernels/attention/textbook_head.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "headlight/kernels/gemm/linear.h"
#include "headlight/kernels/softmax/softmax.h"

namespace headlight::attention {
namespace {

// Of a score.
constexpr uint8_t kKept = 1;      // by the mask
constexpr uint8_t kReplaced = 2;  // it was non-finite and counts as 0
constexpr uint8_t kDropped = 4;   // its weight

bool CountsInOut(uint8_t flags) { return (flags & (kKept | kDropped)) == kKept; }
bool PassesGradient(uint8_t flags) { return (flags & (kKept | kReplaced)) == kKept; }

// --- products ---

template <typename T>
std::vector<int64_t> NonfiniteRows(const Tensor& matrix) {
  std::vector<int64_t> rows;
  const View<const T> view = matrix.view<T>();
  for (int64_t i = 0; i < view.size(0); ++i) {
    const T* row = view.row(i);
    // A sum of zeros is 0, and of anything non-finite NaN.
    T sum = 0;
    for (int64_t c = 0; c < view.size(1); ++c) sum += row[c] * T{0};
    if (sum != 0) rows.push_back(i);
  }
  return rows;
}

template <typename T>
Tensor WithoutRows(const Tensor& matrix, const std::vector<int64_t>& rows) {
  if (rows.empty()) return matrix;
  Tensor left = matrix.Clone(MemoryTag::kWorkspace);
  for (int64_t row : rows) std::fill_n(left.view<T>().row(row), left.size(1), T{0});
  return left;
}

// to += factor * from, of `size` values.
template <typename T>
void AddScaled(T factor, const T* from, int64_t size, T* to) {
  for (int64_t c = 0; c < size; ++c) to[c] += factor * from[c];
}

// c = a b^T.
void MultiplyTransposed(const Tensor& a, const Tensor& b, TextbookScratch& scratch, Tensor& c) {
  scratch.packed.Prepare(b, PackedLinear::Use::kForward, scratch.precision);
  LinearForward(a, scratch.packed, nullptr, {}, c);
}

// c += a b. A row j of b that is not finite enters row i of c where counts(i, j) alone.
template <typename T, typename Counts>
void AddProduct(const Tensor& a, const Tensor& b, const Counts& counts, TextbookScratch& scratch,
                Tensor& c) {
  const std::vector<int64_t> rest = NonfiniteRows<T>(b);
  scratch.packed.Prepare(WithoutRows<T>(b, rest), PackedLinear::Use::kForwardAndBackward,
                         scratch.precision);
  LinearBackwardInput(a, scratch.packed, {.update = Update::kAdd}, c);
  for (int64_t j : rest) {
    for (int64_t i = 0; i < a.size(0); ++i) {
      if (!counts(i, j)) continue;
      AddScaled(a.view<T>()(i, j), b.view<T>().row(j), b.size(1), c.view<T>().row(i));
    }
  }
}

// c += a^T b. A row i of b that is not finite enters row j of c where counts(i, j) alone.
template <typename T, typename Counts>
void AddTransposedProduct(const Tensor& a, const Tensor& b, const Counts& counts,
                          const TextbookScratch& scratch, Tensor& c) {
  const std::vector<int64_t> rest = NonfiniteRows<T>(b);
  LinearBackwardWeight(WithoutRows<T>(b, rest), a, c, nullptr, scratch.precision);
  for (int64_t i : rest) {
    for (int64_t j = 0; j < a.size(1); ++j) {
      if (!counts(i, j)) continue;
      AddScaled(a.view<T>()(i, j), b.view<T>().row(i), b.size(1), c.view<T>().row(j));
    }
  }
}

// --- relative positions: products with the table, then one entry per pair (Shaw et al. 2018,
// section 3.3) ---

// The rows of a table that the distances of a sequence reach.
struct ReachedTable {
  ReachedTable(const Tensor& table, int64_t head, const SequenceRange& range)
      : limit((table.size(1) - 1) / 2), first(limit - std::min(range.queries - 1, limit)) {
    const int64_t last = limit + std::min(range.keys - 1, limit);
    rows = table.Select(0, table.size(0) == 1 ? 0 : head).Slice(0, first, last + 1);
  }
  int64_t RowOf(int64_t query, int64_t key) const {
    return std::clamp(key - query, -limit, limit) + limit - first;
  }

  int64_t limit, first;
  Tensor rows;  // [reached, width]
};

// scores(i, j) += x_i . table[j - i].
template <typename T>
void AddPositions(const ReachedTable& table, const Tensor& x, TextbookScratch& scratch,
                  Tensor& scores) {
  Tensor& positions = scratch.positions.Get({x.size(0), table.rows.size(0)}, x.dtype());
  MultiplyTransposed(x, table.rows, scratch, positions);
  for (int64_t i = 0; i < scores.size(0); ++i) {
    const T* from = positions.view<T>().row(i);
    T* to = scores.view<T>().row(i);
    for (int64_t j = 0; j < scores.size(1); ++j) to[j] += from[table.RowOf(i, j)];
  }
}

// Sums of a matrix over the pairs of each distance, [Lq, reached].
template <typename T>
Tensor& SumPositions(const ReachedTable& table, const Tensor& matrix, TextbookScratch& scratch) {
  Tensor& sums = scratch.positions.Get({matrix.size(0), table.rows.size(0)}, matrix.dtype());
  sums.FillZero();
  for (int64_t i = 0; i < matrix.size(0); ++i) {
    const T* from = matrix.view<T>().row(i);
    T* to = sums.view<T>().row(i);
    for (int64_t j = 0; j < matrix.size(1); ++j) to[table.RowOf(i, j)] += from[j];
  }
  return sums;
}

// Whether any pair of that distance counts, for sums of weights or of score gradients: those that
// do not are exact zeros.
template <typename T>
auto NonzeroIn(const Tensor& sums) {
  return [view = sums.view<T>()](int64_t i, int64_t r) { return view(i, r) != 0; };
}

// --- forward ---

// The keys [begin, end) that the mask's intervals leave to query i.
struct Interval {
  int64_t begin, end;
};
Interval KeptInterval(const TextbookHead& head, int64_t i) {
  const int64_t end = head.intervals.End(i);
  return {std::min(head.intervals.Begin(i), end), end};
}

// ALiBi of row i: the score of a key falls with its distance.
template <typename T>
void AddAlibi(const TextbookHead& head, int64_t i, const Interval& kept, T* scores) {
  const std::vector<double>& slopes = head.problem.bias.alibi_slopes;
  if (slopes.empty()) return;
  const T slope = static_cast<T>(slopes[static_cast<size_t>(head.head)]);
  const int64_t place = i + PlaceShift(head.problem, head.range);
  for (int64_t j = kept.begin; j < kept.end; ++j) {
    scores[j] -= slope * static_cast<T>(std::abs(j - place));
  }
}

// Scales the scores of row i, hides those that the mask does not keep; how many were replaced. One
// short loop for each step, over whole vectors.
template <typename T>
int64_t MaskRow(const TextbookHead& head, int64_t i, T* scores, uint8_t* flags) {
  constexpr T kHidden = -std::numeric_limits<T>::infinity();
  const AttentionProblem& problem = head.problem;
  const View<const uint8_t>& keep = problem.mask.keep;
  const T scale = static_cast<T>(problem.EffectiveScale());
  const auto [begin, end] = KeptInterval(head, i);
  const int64_t keys = head.range.keys;
  for (int64_t j = begin; j < end; ++j) scores[j] *= scale;
  AddAlibi(head, i, {begin, end}, scores);
  std::fill(scores, scores + begin, kHidden);
  std::fill(scores + end, scores + keys, kHidden);
  std::fill(flags, flags + keys, uint8_t{0});
  std::fill(flags + begin, flags + end, kKept);
  for (int64_t j = begin; keep.data != nullptr && j < end; ++j) {
    if (keep(head.sequence, head.head, i, j) != 0) continue;
    scores[j] = kHidden;
    flags[j] = 0;
  }
  int64_t replaced = 0;
  const bool replaces = problem.nonfinite == NonFiniteScores::kReplaceByZero;
  for (int64_t j = begin; replaces && j < end; ++j) {
    if (flags[j] == 0 || std::isfinite(scores[j])) continue;
    flags[j] |= kReplaced;
    scores[j] = 0;
    ++replaced;
  }
  // Scores of -inf alone are nothing to attend to.
  const bool attends =
      std::any_of(scores + begin, scores + end, [](T score) { return score != kHidden; });
  if (!attends) std::fill(flags, flags + keys, uint8_t{0});
  return replaced;
}

// A row of NaN is NaN only where the mask keeps it.
template <typename T>
void ClearHiddenNans(const uint8_t* flags, int64_t keys, T* weights) {
  if (!std::isnan(weights[0])) return;
  for (int64_t j = 0; j < keys; ++j) {
    if ((flags[j] & kKept) == 0) weights[j] = 0;
  }
}

template <typename T>
void DropWeights(TextbookHead& head) {
  const WeightDropout& dropout = head.problem.dropout;
  const DropoutStream stream(dropout, dropout.sample_ids[static_cast<size_t>(head.sequence)],
                             head.head);
  const T factor = static_cast<T>(DropoutFactor(dropout));
  std::vector<uint32_t> kept(static_cast<size_t>(head.range.keys));  // of eight queries
  for (int64_t block = 0; block < head.range.queries; block += 8) {
    for (int64_t j = 0; j < head.range.keys; ++j) {
      kept[static_cast<size_t>(j)] = DropoutKeptBits(stream, block / 8, j);
    }
    const int64_t end = std::min(block + 8, head.range.queries);
    for (int64_t i = block; i < end; ++i) {
      const T* weights = head.weights.view<T>().row(i);
      T* dropped = head.dropped.view<T>().row(i);
      uint8_t* flags = head.flags.view<uint8_t>().row(i);
      const uint32_t bit = 1u << (i - block);
      for (int64_t j = 0; j < head.range.keys; ++j) {
        const bool keeps = (kept[static_cast<size_t>(j)] & bit) != 0;
        dropped[j] = keeps ? weights[j] * factor : T{0};
        flags[j] = static_cast<uint8_t>(flags[j] | (keeps ? 0 : kDropped));
      }
    }
  }
}

template <typename T>
int64_t ForwardOneHead(TextbookHead& head, TextbookScratch& scratch, Tensor& out, Tensor& lse) {
  Tensor& scores = head.weights;  // the softmax works in place
  MultiplyTransposed(head.query, head.key, scratch, scores);
  const RelativePositions& relative = head.problem.relative;
  if (!relative.keys.empty()) {
    const ReachedTable table(relative.keys, head.head, head.range);
    AddPositions<T>(table, head.query, scratch, scores);
  }
  const View<uint8_t> flags = head.flags.view<uint8_t>();
  int64_t replaced = 0;
  for (int64_t i = 0; i < head.range.queries; ++i) {
    replaced += MaskRow(head, i, scores.view<T>().row(i), flags.row(i));
  }
  if (!lse.empty()) {
    Tensor row = lse.Select(0, 0);
    LogSumExp(scores, row);
  }
  Softmax(scores, scores);
  for (int64_t i = 0; i < head.range.queries; ++i) {
    ClearHiddenNans(flags.row(i), head.range.keys, scores.view<T>().row(i));
  }
  if (head.drops()) DropWeights<T>(head);
  const auto counts = [&](int64_t i, int64_t j) { return CountsInOut(flags(i, j)); };
  FillZero<T>(out);
  AddProduct<T>(head.applied(), head.value, counts, scratch, out);
  if (!relative.values.empty()) {
    const ReachedTable table(relative.values, head.head, head.range);
    const Tensor& sums = SumPositions<T>(table, head.applied(), scratch);
    AddProduct<T>(sums, table.rows, NonzeroIn<T>(sums), scratch, out);
  }
  return replaced;
}

// --- backward ---

// sum of a_j b_j, in sixteen partial sums that lie side by side.
template <typename T>
T Dot(const T* a, const T* b, int64_t size) {
  constexpr int64_t kSums = 16;
  T sums[kSums] = {};
  int64_t j = 0;
  for (; j + kSums <= size; j += kSums) {
    for (int64_t lane = 0; lane < kSums; ++lane) sums[lane] += a[j + lane] * b[j + lane];
  }
  for (; j < size; ++j) sums[j % kSums] += a[j] * b[j];
  for (int64_t width = kSums / 2; width > 0; width /= 2) {
    for (int64_t lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
  }
  return sums[0];
}

// From the gradients of the applied weights to those of the unscaled scores, in place: P (dP - D),
// D = sum of P dP, dP = 0 where dropped.
template <typename T>
void SoftmaxBackwardRow(const TextbookHead& head, int64_t i, T* gradient) {
  const T scale = static_cast<T>(head.problem.EffectiveScale());
  const T factor = head.drops() ? static_cast<T>(DropoutFactor(head.problem.dropout)) : T{1};
  const T* weights = head.weights.view<T>().row(i);
  const uint8_t* flags = head.flags.view<uint8_t>().row(i);
  const int64_t keys = head.range.keys;
  for (int64_t j = 0; j < keys; ++j) {
    const T scaled = gradient[j] * factor;
    gradient[j] = CountsInOut(flags[j]) ? scaled : T{0};
  }
  const T mean = Dot(weights, gradient, keys);
  for (int64_t j = 0; j < keys; ++j) {
    const T score = scale * weights[j] * (gradient[j] - mean);
    gradient[j] = PassesGradient(flags[j]) ? score : T{0};
  }
}

// The gradient of out, through values: those of values and of the applied weights.
template <typename T>
void BackwardValues(const TextbookHead& head, TextbookScratch& scratch,
                    TextbookGradients& gradients, Tensor& weight_gradient) {
  const View<const uint8_t> flags = head.flags.view<uint8_t>();
  const auto counts = [&](int64_t i, int64_t j) { return CountsInOut(flags(i, j)); };
  AddTransposedProduct<T>(head.applied(), gradients.out, counts, scratch, gradients.value);
  MultiplyTransposed(gradients.out, head.value, scratch, weight_gradient);
  const Tensor& values = head.problem.relative.values;
  if (values.empty()) return;
  const ReachedTable table(values, head.head, head.range);
  AddPositions<T>(table, gradients.out, scratch, weight_gradient);
  if (gradients.relative_values.empty()) return;
  const Tensor& sums = SumPositions<T>(table, head.applied(), scratch);
  AddTransposedProduct<T>(sums, gradients.out, NonzeroIn<T>(sums), scratch,
                          gradients.relative_values);
}

template <typename T>
void BackwardOneHead(const TextbookHead& head, TextbookScratch& scratch,
                     TextbookGradients& gradients) {
  Tensor& scores =
      scratch.score_gradient.Get({head.range.queries, head.range.keys}, head.weights.dtype());
  BackwardValues<T>(head, scratch, gradients, scores);
  for (int64_t i = 0; i < head.range.queries; ++i) {
    SoftmaxBackwardRow(head, i, scores.view<T>().row(i));
  }
  const View<const uint8_t> flags = head.flags.view<uint8_t>();
  const auto passes = [&](int64_t i, int64_t j) { return PassesGradient(flags(i, j)); };
  FillZero<T>(gradients.query);
  AddProduct<T>(scores, head.key, passes, scratch, gradients.query);
  AddTransposedProduct<T>(scores, head.query, passes, scratch, gradients.key);
  const Tensor& keys = head.problem.relative.keys;
  if (keys.empty()) return;
  const ReachedTable table(keys, head.head, head.range);
  const Tensor& sums = SumPositions<T>(table, scores, scratch);
  AddProduct<T>(sums, table.rows, NonzeroIn<T>(sums), scratch, gradients.query);
  if (gradients.relative_keys.empty()) return;
  AddTransposedProduct<T>(sums, head.query, NonzeroIn<T>(sums), scratch, gradients.relative_keys);
}

}  // namespace

int64_t TextbookForwardHead(TextbookHead& head, TextbookScratch& scratch, Tensor& out,
                            Tensor& lse) {
  return DispatchFloat(head.weights.dtype(),
                       [&]<typename T>() { return ForwardOneHead<T>(head, scratch, out, lse); });
}

void TextbookBackwardHead(const TextbookHead& head, TextbookScratch& scratch,
                          TextbookGradients& gradients) {
  DispatchFloat(head.weights.dtype(),
                [&]<typename T>() { BackwardOneHead<T>(head, scratch, gradients); });
}

Tensor ReachedTableRows(const Tensor& table, int64_t head, const SequenceRange& range) {
  return table.empty() ? Tensor() : ReachedTable(table, head, range).rows;
}

}  // namespace headlight::attention
