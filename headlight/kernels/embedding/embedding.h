// Token embeddings with positions: y[t] = scale table[ids[t]] + positions[p(t)], where p(t) is the
// place of token t in its sequence. f32 and f64; matrices may have any row stride, columns are
// adjacent. Errors: kShape; kInput for an id outside of the table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headlight/tensor/tensor.h"

namespace headlight {

// Sinusoidal positions (Vaswani et al. 2017, section 3.5): [length, features],
//   table[p][2i] = sin(p / 10000^(2i / features)),  table[p][2i + 1] = cos(the same).
Tensor SinusoidalPositions(int64_t length, int64_t features, DType dtype, MemoryTag tag);

struct EmbeddingInput {
  const Tensor& ids;                  // i32 [tokens]
  const Tensor& table;                // [vocabulary, features]
  double scale = 1;                   // sqrt(features) in Vaswani et al. 2017
  const Tensor* positions = nullptr;  // [max_length, features], learned or sinusoidal
  std::span<const int64_t> offsets;   // [batch + 1]; needed with positions only
};

// y [tokens, features], overwritten. Throws kShape when a sequence is longer than `positions`.
void EmbeddingForward(const EmbeddingInput& input, Tensor& y);

struct EmbeddingGradient {
  Tensor& dtable;                // [vocabulary, features]; dtable[id] += scale dy[t], t ascending
  Tensor* dpositions = nullptr;  // [max_length, features], accumulated; with `positions`
};

// dy [tokens, features]. Only the rows of `dtable` that TouchedRows(ids) lists are written.
void EmbeddingBackward(const EmbeddingInput& input, const Tensor& dy,
                       const EmbeddingGradient& gradient);

// The distinct ids, ascending. ids: i32 [tokens].
std::vector<int32_t> TouchedRows(const Tensor& ids);

// Sets the named rows of a [rows, features] matrix to 0: clears a gradient that few rows of were
// touched. Throws kInput for a row outside of it.
void ZeroRows(std::span<const int32_t> rows, Tensor& matrix);

}  // namespace headlight
