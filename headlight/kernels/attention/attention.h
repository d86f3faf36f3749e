// Multi-head attention on ragged batches: exact, deterministic, never an n x n matrix in memory.
//
//   score(i, j)  = softcap(scale * (q_i . k_j + q_i . relative_key[j - i])) + bias(i, j)
//   weight(i, :) = softmax over the keys that the mask keeps
//   out(i)       = gate * sum_j dropout(weight(i, j)) * (v_j + relative_value[j - i])
//
// Forward: online softmax over key blocks (Milakov and Gimelshein 2018; Rabe and Staats 2021; Dao
// et al. 2022). Backward: weights are computed again from `lse`. f32 runs the fused vector kernels;
// f64 and what they refuse (PlanAttention says why) run the plain reference loops.
//
// What holds at the edges: a query with nothing to attend to gives out 0, weights 0, lse -inf and
// zero gradients. A masked key, value, query or output gradient never leaks, whatever it holds (NaN
// and inf too). A NaN or a score of +inf that is not masked comes out as NaN. Zero lengths are
// legal. Results depend on one sequence's own data, lengths and mask alone: never on threads or on
// what else is in the batch.
//
// All functions check their arguments and throw Error(kShape) or Error(kUsage). Outputs must not
// overlap inputs or each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headlight/kernels/precision.h"
#include "headlight/tensor/tensor.h"

namespace headlight {

// Which keys a query may look at: those that every part of the mask keeps. i and j count from 0
// inside one sequence; Lq and Lk are its numbers of queries and keys (from the offsets).
struct Mask {
  enum class Causal {
    kNone,
    kAlignedToStart,  // keeps j <= i
    kAlignedToEnd,    // keeps j <= i + Lk - Lq: the last query sees every key
  };
  // Keeps i - left <= j <= i + right; with Causal::kAlignedToEnd, i counts as i + Lk - Lq.
  struct Window {
    int64_t left = 0;
    int64_t right = 0;
  };

  // Kept blocks of scores as a compressed list; work is proportional to them, forward and backward.
  // Blocks of 64 and more are fast; smaller ones are slower by what a block costs to pack.
  struct BlockList {
    int64_t query_block = 64;  // tokens; at least 1
    int64_t key_block = 64;
    int64_t heads = 1;  // 1: one list for all heads; else the problem's
    // Row r keeps the key blocks key_blocks[offsets[r], offsets[r + 1]), ascending. Rows go by
    // sequence, then head, then query block: ceil(Lq / query_block) of them for each sequence and
    // head. rows + 1 offsets, from 0.
    std::vector<int64_t> offsets;
    std::vector<int32_t> key_blocks;
  };

  Causal causal = Causal::kNone;
  std::optional<Window> window;
  // Empty, or one per sequence, in [0, Lk]: keeps j < key_lengths[sequence].
  std::vector<int64_t> key_lengths;
  // Documents: attention within segments of one row. Both empty, or one number per query token and
  // one per key token, which never decrease inside a sequence: keeps the keys of the query's own
  // number. Work is proportional to the kept keys, forward and backward.
  std::vector<int32_t> query_documents;
  std::vector<int32_t> key_documents;
  std::optional<BlockList> blocks;
  // data == nullptr: none. Else [batch, heads, query_len, key_len], non-zero keeps; the last two
  // sizes are at least the longest Lq and Lk. Any strides; stride 0 repeats one axis (one mask for
  // all heads). Not owned.
  View<const uint8_t> keep;
};

// Relative positions (Shaw et al. 2018, "Self-attention with relative position representations",
// equations 3 and 4): table row = clamp(j - i, -(L - 1), L - 1) + L - 1. Shapes [heads or 1, 2L -
// 1, head_dim] and [heads or 1, 2L - 1, value_dim]; an empty tensor means none. Last stride 1.
struct RelativePositions {
  Tensor keys;
  Tensor values;
};

// What is added to a score after softcap and before the mask; both parts may be there.
struct Bias {
  // ALiBi (Press et al. 2022, "Train short, test long"): -slope[head] * |j - i|, where i counts as
  // for Mask::Window. Empty, or one per head, finite; AlibiSlopes gives the paper's.
  std::vector<double> alibi_slopes;
  // Empty: none. Else [batch, heads, query_len, key_len] of the problem's dtype; the last two sizes
  // are at least the longest Lq and Lk. Any strides; Tensor::Repeat gives an axis of stride 0 (one
  // bias for all heads). -inf masks, as a keep matrix does.
  Tensor additive;
};
// 2^(-8 (h + 1) / heads) for head h when heads is a power of two; else those of the next lower
// power of two, and then every other one of twice that power (the paper's reference code).
std::vector<double> AlibiSlopes(int64_t heads);

// Dropout on weights: each is dropped with probability `rate` (rounded to 1/65536), the others are
// divided by 1 - rate. The draw is a pure function of (seed, layer, step, sample id, head, query,
// key) (DropoutKeepsWeight below), so it depends on no batch slot. rate 0 is bitwise no dropout.
struct WeightDropout {
  double rate = 0;  // in [0, 1)
  uint64_t seed = 0;
  uint32_t layer = 0;
  uint64_t step = 0;
  std::vector<int64_t> sample_ids;  // one per sequence; needed when rate > 0
};

// What becomes of a non-finite score (after softcap and bias) that is not masked.
enum class NonFiniteScores {
  kPropagate,      // the row comes out as NaN
  kReplaceByZero,  // the score counts as 0, passes no gradient, and is counted
};

struct AttentionProblem {
  // batch + 1 each, from 0, not decreasing: sequence s has the rows [offsets[s], offsets[s + 1]).
  std::vector<int64_t> query_offsets;
  std::vector<int64_t> key_offsets;
  int64_t heads = 1;
  int64_t kv_heads = 1;  // divides heads; head h reads key/value head h / (heads / kv_heads)
  int64_t head_dim = 0;
  int64_t value_dim = 0;
  DType dtype = DType::kF32;  // of every tensor; f32 or f64
  // kBF16, not for f64: the operands of every product of the fused kernels (queries, keys,
  // values, weights, gradients) are rounded to bf16, what is finite stays finite, and sums and
  // softmax are f32. Products of few queries (decoding) and of weights and statistics stay f32,
  // and so does what runs the reference.
  Precision precision = Precision::kF32;
  std::optional<double> scale;  // 1 / sqrt(head_dim) unless given; finite
  // score = softcap * tanh(score / softcap); none unless given; positive and finite.
  std::optional<double> softcap;
  Bias bias;
  Mask mask;
  RelativePositions relative;
  WeightDropout dropout;
  NonFiniteScores nonfinite = NonFiniteScores::kPropagate;
  // Empty, or one per head, finite: what its part of `out` is multiplied with. A head of gate 0 is
  // closed: it is not computed, and is as one that has nothing to attend to (also for weights,
  // statistics and FindNonFiniteScore).
  std::vector<double> head_gates;

  int64_t batch() const { return static_cast<int64_t>(query_offsets.size()) - 1; }
  int64_t query_tokens() const { return query_offsets.back(); }
  int64_t key_tokens() const { return key_offsets.back(); }
  double GateOf(int64_t head) const {
    return head_gates.empty() ? 1 : head_gates[static_cast<size_t>(head)];
  }
  double EffectiveScale() const;
};

// Ragged, as below, or padded: every tensor of tokens (inputs, out, their gradients) may instead be
// [batch, len, heads, dim], where sequence s has the first rows, as many as the offsets say, of
// tensor s; the rows after them are neither read nor written, and cost nothing. Any strides:
// windows into a fused [tokens, 3 * heads * head_dim] buffer are welcome, and [batch, heads, len,
// dim] is tensor.Transpose(1, 2). PaddedRows and OffsetsOf below help.
struct AttentionInputs {
  Tensor query;  // [query tokens, heads, head_dim]
  Tensor key;    // [key tokens, kv_heads, head_dim]
  Tensor value;  // [key tokens, kv_heads, value_dim]
};

// Offsets of sequences of these lengths, which must not be negative: {0, l0, l0 + l1, ...}. A
// padded batch of whole rows has equal lengths.
std::vector<int64_t> OffsetsOf(const std::vector<int64_t>& lengths);

// How a padded tensor of rank 4 lies in memory, outermost axis first.
enum class PaddedLayout {
  kBatchLenHeads,  // [batch, len, heads, dim]
  kBatchHeadsLen,  // [batch, heads, len, dim]
};
// A window on the tensor as AttentionInputs wants it. No copy.
Tensor PaddedRows(const Tensor& tensor, PaddedLayout layout);

// Weights of one head of one sequence, before dropout: [Lq, Lk], rows sum to 1 (or 0).
struct HeadWeights {
  int64_t sequence = 0;
  int64_t head = 0;
  Tensor weights;  // filled; allocated by AttentionForward when empty
};

// Per query statistics of the weights (before dropout) of chosen heads, in O(n) memory. Tensors are
// [chosen heads, query tokens] of the problem's dtype (f32 for bf16 and f16), allocated by
// AttentionForward. All are 0 (and the key -1) for a query with nothing to attend to.
struct HeadStatistics {
  std::vector<int64_t> heads;    // asked: which heads, ascending or not
  std::vector<uint8_t> key_set;  // asked: empty, or one per key token; non-zero is in the set
  Tensor entropy;                // -sum w ln w, in nats
  Tensor distance;               // sum w (j - i)
  Tensor absolute_distance;      // sum w |j - i|
  Tensor largest_weight;
  Tensor largest_key;  // i32: its key (the first of equals), counted in the sequence
  Tensor set_mass;     // sum of w over key_set; empty when key_set is
  int64_t top = 0;     // asked: how many of the keys with the largest weights
  // [chosen heads, query tokens, top], the largest first (of equals, the first key); weight 0 and
  // key -1 after the last key of a weight above 0. Empty when top is 0.
  Tensor top_weights;
  Tensor top_keys;  // i32, counted in the sequence
};

struct AttentionOutputs {
  Tensor out;  // [query tokens, heads, value_dim] or padded, any strides
  Tensor lse;  // [heads, query tokens] by offsets, last stride 1: ln sum exp score. Empty: unwanted
  std::vector<HeadWeights> weights;  // sequence and head set by the caller
  std::optional<HeadStatistics> statistics;
  int64_t replaced_scores = 0;  // under kReplaceByZero: how many, over all heads
};

// Overwrites outputs.out, lse and what else is asked for.
void AttentionForward(const AttentionProblem& problem, const AttentionInputs& inputs,
                      AttentionOutputs& outputs);

struct AttentionGradients {
  Tensor query;  // shapes of the inputs, any strides; overwritten
  Tensor key;
  Tensor value;
  Tensor relative_keys;    // shape of the table; added to, in the order of sequences and heads.
  Tensor relative_values;  // Empty: unwanted
  // Of bias.additive, [batch, heads, query_len, key_len] of at least the longest Lq and Lk, any
  // strides; overwritten, 0 where a key is masked. Not summed over axes that the bias repeats.
  Tensor bias = {};  // Empty: unwanted
  // Of head_gates, [heads]; added to, in the order of sequences. Heads that are closed are computed
  // for it. Empty: unwanted.
  Tensor gates = {};
};

// `outputs` are those of the forward pass of the same problem and inputs (out and lse are read).
// out_gradient: [query tokens, heads, value_dim] or padded, any strides.
void AttentionBackward(const AttentionProblem& problem, const AttentionInputs& inputs,
                       const AttentionOutputs& outputs, const Tensor& out_gradient,
                       AttentionGradients& gradients);

// The same by plain loops and double sums (attention_reference.cc): what the fused kernels are
// tested against. The backward pass computes out and lse anew and does not read `outputs`.
void AttentionForwardReference(const AttentionProblem& problem, const AttentionInputs& inputs,
                               AttentionOutputs& outputs);
void AttentionBackwardReference(const AttentionProblem& problem, const AttentionInputs& inputs,
                                const Tensor& out_gradient, AttentionGradients& gradients);

// Which kernel runs, and why each better one does not.
struct AttentionPlan {
  // "fused f32 avx512[, decoding]", "fused bf16 amx", "fused f32 avx2, operands rounded to bf16",
  // "reference f64".
  std::string kernel;
  int64_t query_rows = 0;              // rows of a register tile
  int64_t query_block = 0;             // rows of a block of the backward pass
  int64_t key_block = 0;               // keys between two rescalings of the online softmax, or of a
                                       // split when decoding
  std::vector<std::string> modifiers;  // what acts on a tile of scores: "causal", "softcap"
  std::vector<std::string> refusals;   // "fused f32: dtype is f64"

  std::string ToString() const;
};
AttentionPlan PlanAttention(const AttentionProblem& problem);

struct ScorePosition {
  int64_t sequence, head, query, key;
};
// The first non-finite score that is not masked, in the order sequence, head, query, key: what a
// trainer reports when a loss became NaN.
std::optional<ScorePosition> FindNonFiniteScore(const AttentionProblem& problem,
                                                const AttentionInputs& inputs);

// Throws what AttentionForward would throw for this problem alone.
void CheckAttentionProblem(const AttentionProblem& problem);

// The draw of dropout: eight queries share one Philox block (16 bits each). `key` of a weight is
// its position in the sequence.
struct DropoutStream {
  DropoutStream() = default;  // drops nothing
  // One stream per (seed, layer, step, sample id, head).
  DropoutStream(const WeightDropout& dropout, int64_t sample_id, int64_t head);

  uint32_t key0 = 0, key1 = 0;
  uint32_t threshold = 0;  // dropped when the 16-bit draw is below
};
bool DropoutKeepsWeight(const DropoutStream& stream, int64_t query, int64_t key);
// What a kept weight is multiplied with: 1 / (1 - rounded rate).
double DropoutFactor(const WeightDropout& dropout);

}  // namespace headlight
