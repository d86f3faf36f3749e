// The fused f32 kernels behind attention.cc: one head of one sequence at a time, by plain pointers.
// Nothing here checks: attention.cc did.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "headlight/base/cpu.h"
#include "headlight/kernels/attention/attention.h"

namespace headlight::attention {

// Rows of one head: element (i, c) is data[i * row_stride + c * column_stride].
struct Matrix {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 1;

  const float* row(int64_t i) const { return data + i * row_stride; }
  float at(int64_t i, int64_t c) const { return data[i * row_stride + c * column_stride]; }
};
struct MutableMatrix {
  float* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 1;

  float* row(int64_t i) const { return data + i * row_stride; }
};

// Causal, window, key lengths and documents keep one interval of keys per query, and its two ends
// never decrease from query to query. Begin may be past End: nothing is kept.
struct RowIntervals {
  int64_t lower = 0;  // query i keeps from i + lower
  int64_t upper = 0;  // to i + upper, exclusive
  int64_t limit = 0;  // and of these the first `limit` keys
  // And of these the keys of its document, [begins[i], ends[i]); nullptr: no documents.
  const int32_t *begins = nullptr, *ends = nullptr;

  int64_t Begin(int64_t i) const {
    const int64_t begin = std::clamp<int64_t>(i + lower, 0, limit);
    return begins == nullptr ? begin : std::max<int64_t>(begin, begins[i]);
  }
  int64_t End(int64_t i) const {
    const int64_t end = std::clamp<int64_t>(i + upper, 0, limit);
    return ends == nullptr ? end : std::min<int64_t>(end, ends[i]);
  }
};

// A keep matrix of one head; data == nullptr: none.
struct KeepRows {
  const uint8_t* data = nullptr;
  int64_t query_stride = 0, key_stride = 0;

  bool Keeps(int64_t i, int64_t j) const {
    return data == nullptr || data[i * query_stride + j * key_stride] != 0;
  }
};

// The block list of one head (attention.h: Mask::BlockList), by query block and by key block.
struct BlockRows {
  int64_t query_block = 0, key_block = 0;
  const int64_t* offsets = nullptr;      // of query block 0, into key_blocks; nullptr: no list
  const int32_t* key_blocks = nullptr;   // ascending
  const int64_t* key_offsets = nullptr;  // of key block 0, into query_blocks; for the backward pass
  const int32_t* query_blocks = nullptr;

  bool present() const { return offsets != nullptr; }
  bool Keeps(int64_t i, int64_t j) const {
    if (!present()) return true;
    const int64_t* row = offsets + i / query_block;
    return std::binary_search(key_blocks + row[0], key_blocks + row[1], j / key_block);
  }
};

// What acts on the scores of one head after their product: softcap, then bias. A strip holds scores
// before `scale`, and so do these constants: where an additive bias is 0, no bit changes.
struct ScoreModifier {
  float softcap_in = 0;  // score = softcap_out * tanh(softcap_in * score); 0: none
  float softcap_out = 0;
  float alibi = 0;  // times |j - (i + shift)|: -slope / scale
  int64_t shift = 0;
  Matrix additive;        // [queries, keys], times bias_factor, -inf masks; data == nullptr: none
  float bias_factor = 1;  // 1 / scale

  bool any() const { return softcap_in != 0 || alibi != 0 || additive.data != nullptr; }
};

// A table of relative positions of one head, rows -(longest - 1) to longest - 1.
struct RelativeTable {
  Matrix rows;  // data == nullptr: none
  int64_t longest = 0;

  int64_t RowOf(int64_t distance) const {
    return std::clamp(distance, 1 - longest, longest - 1) + longest - 1;
  }
};

// The same in bf16, columns adjacent.
struct Bf16Matrix {
  const uint16_t* data = nullptr;
  int64_t row_stride = 0;

  const uint16_t* row(int64_t i) const { return data + i * row_stride; }
};

struct HeadProblem {
  // What multiplies; kNone: f32, of the ISA that runs. Others know no tables of relative positions.
  Bf16Unit unit = Bf16Unit::kNone;
  int64_t queries = 0, keys = 0, head_dim = 0, value_dim = 0;
  Matrix query, key, value;
  Bf16Matrix key_bf16, value_bf16;  // of a head that decodes: in place of key and value; or null
  float scale = 1;
  float gate = 1;  // of a head that is not closed; a closed one keeps no key
  RowIntervals intervals;
  BlockRows blocks;
  KeepRows keep;
  ScoreModifier modifier;
  RelativeTable relative_keys, relative_values;
  bool drops = false;
  DropoutStream dropout;
  float dropout_factor = 1;
  bool replaces_nonfinite = false;

  bool Keeps(int64_t i, int64_t j) const {
    return j >= intervals.Begin(i) && j < intervals.End(i) && blocks.Keeps(i, j) &&
           keep.Keeps(i, j) &&
           (modifier.additive.data == nullptr ||
            modifier.additive.at(i, j) != -std::numeric_limits<float>::infinity());
  }
  // Any key may be masked, or its score replaced, wherever it lies in its row's interval.
  bool ChecksEveryScore() const {
    return keep.data != nullptr || modifier.additive.data != nullptr || replaces_nonfinite;
  }
  bool Drops(int64_t i, int64_t j) const { return drops && !DropoutKeepsWeight(dropout, i, j); }
};

inline constexpr int64_t kKeyBlock = 512;     // keys between two rescalings
inline constexpr int64_t kForwardRows = 960;  // most query rows of one forward task; a multiple
                                              // of a strip's rows on every ISA

// Where the statistics of query 0 go (attention.h: HeadStatistics); entropy == nullptr: unwanted.
struct ProbeStatistics {
  float *entropy = nullptr, *distance = nullptr, *absolute_distance = nullptr;
  float *largest_weight = nullptr, *set_mass = nullptr;
  int32_t* largest_key = nullptr;
  int64_t top = 0;  // for each query, that many weights and keys
  float* top_weights = nullptr;
  int32_t* top_keys = nullptr;
};

// Queries [begin, end) of one head.
struct ForwardTask {
  int64_t begin = 0, end = 0;
  MutableMatrix out;     // rows of the head
  float* lse = nullptr;  // of query 0; nullptr: unwanted
  // Made beside the output, all but the keys of the largest weights (top is 0). Not in bf16.
  ProbeStatistics statistics;
  const uint8_t* key_set = nullptr;  // of key 0; needed for set_mass
};
// Returns the number of replaced scores.
int64_t FusedForward(const HeadProblem& head, const ForwardTask& task);
int64_t FusedForwardBf16(const HeadProblem& head, const ForwardTask& task);  // unit is not kNone

// Decoding: so few queries that packing keys and values would cost more than it gives. They are
// read where they lie, in splits at multiples of kDecodingKeys that may run side by side (Dao et
// al. 2023, "Flash-Decoding").
inline constexpr int64_t kDecodingKeys = 2 * kKeyBlock;
inline constexpr int64_t kDecodingQueries = 8;  // at most
// Measured with AVX-512, 8 heads of 64: two queries gain from 16 keys on, four are even at 256,
// eight lose at 64 and gain 1.4 times at 128 and at 4,096.
inline bool DecodingPays(int64_t queries, int64_t keys) {
  return queries <= 2 || (queries <= kDecodingQueries && keys >= 32 * queries);
}

// Floats that the queries of one head leave of one split: for each the largest score times log2 e,
// the sum of its weights relative to it, and the weighted sum of the values.
inline int64_t SplitFloats(const HeadProblem& head) { return head.queries * (2 + head.value_dim); }
// The query heads of a group, which read the same keys and values, and where the first of them
// leaves a split.
struct DecodingGroup {
  const HeadProblem* heads = nullptr;
  int64_t head_count = 0;
  float* sums = nullptr;
  int64_t head_stride = 0;  // floats from head to head
};
// All their queries against the split-th kDecodingKeys keys; returns as above.
int64_t FusedForwardSplit(const DecodingGroup& group, int64_t split);
// Finishes all queries of a head from its splits, one after another.
void FusedMergeSplits(const HeadProblem& head, const ForwardTask& task, const float* sums,
                      int64_t splits);

// Weights and statistics of queries [begin, end) of one head, from the lse of its forward pass.
struct ProbeTask {
  int64_t begin = 0, end = 0;
  const float* lse = nullptr;        // of query 0
  const uint8_t* key_set = nullptr;  // of key 0; needed for set_mass
  MutableMatrix weights;             // [queries, keys]; data == nullptr: unwanted
  ProbeStatistics statistics;
};
void FusedProbe(const HeadProblem& head, const ProbeTask& task);

// Query rows of a strip on the ISA that runs, or of the unit.
int64_t FusedStripRows();
int64_t FusedBf16StripRows();

// One query head of a group that shares a key/value head.
struct BackwardHead {
  HeadProblem problem;
  Matrix out, out_gradient;
  const float* lse = nullptr;
  MutableMatrix query_gradient;
  // Tables of this head and sequence, added to; data == nullptr: unwanted.
  MutableMatrix relative_key_gradient, relative_value_gradient;
  MutableMatrix bias_gradient;  // [queries, keys] of 0; data == nullptr: unwanted
};
// All query heads of one key/value head of one sequence.
struct BackwardTask {
  const BackwardHead* heads = nullptr;
  int64_t head_count = 0;
  MutableMatrix key_gradient, value_gradient;
};
void FusedBackward(const BackwardTask& task);
void FusedBackwardBf16(const BackwardTask& task);  // the heads' unit is not kNone

// 2^x by the polynomial of the kernels, for its test.
void FusedExp2(const float* x, float* y, int64_t count);

// 64-byte-aligned workspace of the calling thread, at least `floats` long, kept for the next call.
float* WorkerScratch(int64_t floats);

}  // namespace headlight::attention
