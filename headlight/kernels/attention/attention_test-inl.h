// Cases for the attention tests: a problem with random inputs, and comparisons.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "headlight/base/random.h"
#include "headlight/kernels/attention/attention.h"

namespace headlight::attention_test {

struct Lengths {
  int64_t queries, keys;
};

inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Options {
  std::vector<Lengths> lengths = {{5, 5}};
  int64_t heads = 1;
  int64_t kv_heads = 1;
  int64_t head_dim = 8;
  int64_t value_dim = 8;
  DType dtype = DType::kF64;
  uint64_t seed = 1;
  double magnitude = 1;       // standard deviation of query, key, value
  int64_t relative_max = 0;   // L of the tables; 0: none
  bool fused_layout = false;  // query, key, value as windows of one buffer (needs equal lengths)
};

struct Case {
  AttentionProblem problem;
  AttentionInputs inputs;
  Tensor out_gradient;
  std::vector<uint8_t> keep;  // storage of problem.mask.keep
};

inline int64_t LongestOf(const std::vector<int64_t>& offsets) {
  int64_t longest = 0;
  for (size_t s = 1; s < offsets.size(); ++s) {
    longest = std::max(longest, offsets[s] - offsets[s - 1]);
  }
  return longest;
}

inline void FillNormal(Tensor& tensor, uint64_t seed, uint64_t stream, double magnitude) {
  if (tensor.empty()) return;
  RandomStream random(seed, stream);
  DispatchFloat(tensor.dtype(), [&]<typename T>() {
    const View<T> view = tensor.view<T>();
    for (int64_t i = 0; i < view.size(0); ++i) {
      for (int64_t j = 0; j < view.size(1); ++j) {
        for (int64_t k = 0; k < view.size(2); ++k) {
          // Through float, so that f32 and f64 cases hold the same numbers.
          view(i, j, k) = static_cast<T>(static_cast<float>(magnitude * random.Normal()));
        }
      }
    }
  });
}

inline Tensor NormalTensor(const Shape& shape, DType dtype, uint64_t seed, uint64_t stream,
                           double magnitude) {
  Tensor tensor = Tensor::Zeros(shape, dtype, MemoryTag::kOther);
  FillNormal(tensor, seed, stream, magnitude);
  return tensor;
}

// Lengths about the widths of vectors (1, 8, 16), panels (16, 32) and tiles (3, 4, 6, 8).
inline std::vector<Lengths> AwkwardLengths() {
  std::vector<Lengths> lengths;
  for (int64_t n : {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 61}) lengths.push_back({n, n});
  lengths.insert(lengths.end(), {{1, 33}, {33, 1}, {7, 64}, {50, 13}});
  return lengths;
}

inline Options F32(std::vector<Lengths> lengths, int64_t dim = 8) {
  Options options;
  options.lengths = std::move(lengths);
  options.head_dim = options.value_dim = dim;
  options.dtype = DType::kF32;
  return options;
}

inline Case MakeCase(const Options& options) {
  Case made;
  AttentionProblem& problem = made.problem;
  problem.query_offsets = {0};
  problem.key_offsets = {0};
  for (const Lengths& lengths : options.lengths) {
    problem.query_offsets.push_back(problem.query_offsets.back() + lengths.queries);
    problem.key_offsets.push_back(problem.key_offsets.back() + lengths.keys);
    problem.dropout.sample_ids.push_back(100 + static_cast<int64_t>(problem.query_offsets.size()));
  }
  problem.heads = options.heads;
  problem.kv_heads = options.kv_heads;
  problem.head_dim = options.head_dim;
  problem.value_dim = options.value_dim;
  problem.dtype = options.dtype;
  const int64_t queries = problem.query_tokens(), keys = problem.key_tokens();
  const Shape query{queries, options.heads, options.head_dim};
  const Shape key{keys, options.kv_heads, options.head_dim};
  const Shape value{keys, options.kv_heads, options.value_dim};
  if (options.fused_layout) {
    const int64_t width = query[1] * query[2] + key[1] * key[2] + value[1] * value[2];
    Tensor buffer = Tensor::Zeros({queries, width}, options.dtype, MemoryTag::kOther);
    const int64_t key_at = query[1] * query[2], value_at = key_at + key[1] * key[2];
    made.inputs.query = buffer.Slice(1, 0, key_at).SplitAxis(1, query[1]);
    made.inputs.key = buffer.Slice(1, key_at, value_at).SplitAxis(1, key[1]);
    made.inputs.value = buffer.Slice(1, value_at, width).SplitAxis(1, value[1]);
  } else {
    made.inputs.query = Tensor::Zeros(query, options.dtype, MemoryTag::kOther);
    made.inputs.key = Tensor::Zeros(key, options.dtype, MemoryTag::kOther);
    made.inputs.value = Tensor::Zeros(value, options.dtype, MemoryTag::kOther);
  }
  FillNormal(made.inputs.query, options.seed, 1, options.magnitude);
  FillNormal(made.inputs.key, options.seed, 2, options.magnitude);
  FillNormal(made.inputs.value, options.seed, 3, 1);
  made.out_gradient =
      NormalTensor({queries, options.heads, options.value_dim}, options.dtype, options.seed, 4, 1);
  if (options.relative_max > 0) {
    const int64_t rows = 2 * options.relative_max - 1;
    problem.relative.keys = NormalTensor({options.heads, rows, options.head_dim}, options.dtype,
                                         options.seed, 5, options.magnitude);
    problem.relative.values =
        NormalTensor({1, rows, options.value_dim}, options.dtype, options.seed, 6, 1);
  }
  return made;
}

// A random keep matrix [batch, heads, longest, longest] with about `share` of the weights kept.
inline void AddKeep(Case& made, double share, uint64_t seed) {
  const int64_t queries = LongestOf(made.problem.query_offsets);
  const int64_t keys = LongestOf(made.problem.key_offsets);
  const Shape shape{made.problem.batch(), made.problem.heads, queries, keys};
  made.keep.resize(static_cast<size_t>(shape.elements()));
  RandomStream random(seed, 9);
  for (uint8_t& keep : made.keep) keep = random.Uniform() < share ? 1 : 0;
  made.problem.mask.keep = {made.keep.data(), shape, ContiguousStrides(shape)};
}

// A random additive bias [batch, heads, longest, longest], -inf for about `masked` of it.
inline void AddBias(Case& made, double masked, uint64_t seed) {
  const AttentionProblem& problem = made.problem;
  Tensor bias = Tensor::Zeros({problem.batch(), problem.heads, LongestOf(problem.query_offsets),
                               LongestOf(problem.key_offsets)},
                              problem.dtype, MemoryTag::kOther);
  RandomStream random(seed, 11);
  DispatchFloat(problem.dtype, [&]<typename T>() {
    for (int64_t i = 0; i < bias.elements(); ++i) {
      const T value = static_cast<T>(static_cast<float>(random.Normal()));
      bias.data<T>()[i] = random.Uniform() < masked ? -std::numeric_limits<T>::infinity() : value;
    }
  });
  made.problem.bias.additive = bias;
}

// A random block list with about `share` of the blocks kept; some rows keep none.
inline void AddBlocks(Case& made, double share, Mask::BlockList blocks, uint64_t seed) {
  RandomStream random(seed, 12);
  const AttentionProblem& problem = made.problem;
  const auto count = [](const std::vector<int64_t>& offsets, size_t s, int64_t block) {
    return (offsets[s + 1] - offsets[s] + block - 1) / block;
  };
  blocks.offsets = {0};
  blocks.key_blocks.clear();
  for (size_t s = 0; s < static_cast<size_t>(problem.batch()); ++s) {
    const int64_t rows = blocks.heads * count(problem.query_offsets, s, blocks.query_block);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t columns = count(problem.key_offsets, s, blocks.key_block);
      for (int64_t c = 0; c < columns; ++c) {
        if (random.Uniform() < share) blocks.key_blocks.push_back(static_cast<int32_t>(c));
      }
      blocks.offsets.push_back(static_cast<int64_t>(blocks.key_blocks.size()));
    }
  }
  made.problem.mask.blocks = blocks;
}

// Cuts each sequence into `documents` segments at random places; some may have no query or no key.
inline void AddDocuments(Case& made, int64_t documents, uint64_t seed) {
  RandomStream random(seed, 10);
  Mask& mask = made.problem.mask;
  const auto cut = [&](const std::vector<int64_t>& offsets, std::vector<int32_t>& numbers) {
    numbers.clear();
    for (size_t s = 1; s < offsets.size(); ++s) {
      std::vector<int32_t> sorted;
      for (int64_t i = offsets[s - 1]; i < offsets[s]; ++i) {
        // Numbers need not begin at 0 nor be adjacent.
        sorted.push_back(static_cast<int32_t>(
            3 * std::floor(random.Uniform() * static_cast<double>(documents)) - 4));
      }
      std::sort(sorted.begin(), sorted.end());
      numbers.insert(numbers.end(), sorted.begin(), sorted.end());
    }
  };
  cut(made.problem.query_offsets, mask.query_documents);
  if (made.problem.query_offsets == made.problem.key_offsets) {
    mask.key_documents = mask.query_documents;
  } else {
    cut(made.problem.key_offsets, mask.key_documents);
  }
}

// Sequence s of a batch as a batch of its own.
inline Case Alone(const Case& made, int64_t s) {
  Case alone = made;
  const size_t at = static_cast<size_t>(s);
  const int64_t q0 = made.problem.query_offsets[at], q1 = made.problem.query_offsets[at + 1];
  const int64_t k0 = made.problem.key_offsets[at], k1 = made.problem.key_offsets[at + 1];
  alone.problem.query_offsets = {0, q1 - q0};
  alone.problem.key_offsets = {0, k1 - k0};
  alone.problem.dropout.sample_ids = {made.problem.dropout.sample_ids[at]};
  alone.inputs = {made.inputs.query.Slice(0, q0, q1), made.inputs.key.Slice(0, k0, k1),
                  made.inputs.value.Slice(0, k0, k1)};
  alone.out_gradient = made.out_gradient.Slice(0, q0, q1);
  return alone;
}

inline AttentionGradients MakeGradients(const Case& made) {
  const DType dtype = made.problem.dtype;
  const auto like = [&](const Tensor& tensor) {
    return tensor.empty() ? Tensor() : Tensor::Zeros(tensor.shape(), dtype, MemoryTag::kOther);
  };
  return {like(made.inputs.query),
          like(made.inputs.key),
          like(made.inputs.value),
          like(made.problem.relative.keys),
          like(made.problem.relative.values),
          like(made.problem.bias.additive),
          made.problem.head_gates.empty()
              ? Tensor()
              : Tensor::Zeros({made.problem.heads}, dtype, MemoryTag::kOther)};
}

inline AttentionOutputs MakeOutputs(const Case& made) {
  AttentionOutputs outputs;
  outputs.lse = Tensor::Zeros({made.problem.heads, made.problem.query_tokens()}, made.problem.dtype,
                              MemoryTag::kOther);
  return outputs;
}

// Any f32 or f64 tensor as doubles in row-major order.
inline std::vector<double> Values(const Tensor& tensor) {
  if (tensor.empty()) return {};
  const Tensor copy = tensor.CastTo(DType::kF64, MemoryTag::kOther).Clone(MemoryTag::kOther);
  const double* data = copy.data<double>();
  return {data, data + copy.elements()};
}

// NaN equals NaN; else the same bits.
inline bool SameBits(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = Values(a), y = Values(b);
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (std::memcmp(&x[i], &y[i], sizeof(double)) != 0) return false;
  }
  return true;
}

inline double LargestMagnitude(const std::vector<double>& values) {
  double largest = 0;
  for (double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

}  // namespace headlight::attention_test
