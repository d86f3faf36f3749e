// What a problem and its tensors must be; every entry point of attention.h calls these first.
#include <algorithm>
#include <cmath>

#include "headlight/base/error.h"
#include "headlight/base/random.h"
#include "headlight/kernels/attention/attention_internal.h"
#include "headlight/kernels/attention/attention_storage.h"
#include "headlight/kernels/half_formats.h"

namespace headlight {
namespace {

using namespace attention;

using attention::BlockCount;
using attention::RangeOf;
using attention::SequenceRange;

void CheckOffsets(const char* name, const std::vector<int64_t>& offsets) {
  if (offsets.empty() || offsets.front() != 0 || !std::is_sorted(offsets.begin(), offsets.end())) {
    throw Error(ErrorKind::kShape, "attention: {} must start with 0 and never decrease", name);
  }
}

int64_t LongestOf(const std::vector<int64_t>& offsets) {
  int64_t longest = 0;
  for (size_t s = 1; s < offsets.size(); ++s) {
    longest = std::max(longest, offsets[s] - offsets[s - 1]);
  }
  return longest;
}

// [batch, heads, query_len, key_len] of at least the longest lengths.
void CheckScoreTensor(const AttentionProblem& problem, const char* name, const Shape& shape) {
  const int64_t queries = LongestOf(problem.query_offsets), keys = LongestOf(problem.key_offsets);
  if (shape.rank() != 4 || shape[0] != problem.batch() || shape[1] != problem.heads ||
      shape[2] < queries || shape[3] < keys) {
    throw Error(ErrorKind::kShape, "attention: {} must be [{}, {}, >= {}, >= {}], found {}", name,
                problem.batch(), problem.heads, queries, keys, shape.ToString());
  }
}

void CheckDocuments(const char* name, const std::vector<int32_t>& documents,
                    const std::vector<int64_t>& offsets) {
  if (static_cast<int64_t>(documents.size()) != offsets.back()) {
    throw Error(ErrorKind::kShape,
                "attention: {} must be {} (one per token, for queries and keys), found {}", name,
                offsets.back(), documents.size());
  }
  for (size_t s = 1; s < offsets.size(); ++s) {
    const auto begin = documents.begin() + offsets[s - 1], end = documents.begin() + offsets[s];
    const auto decreases = std::is_sorted_until(begin, end);
    if (decreases != end) {
      throw Error(
          ErrorKind::kShape,
          "attention: {} must not decrease inside a sequence, found {} after {} in sequence "
          "{}",
          name, *decreases, *(decreases - 1), s - 1);
    }
  }
}

void CheckBlockRow(const Mask::BlockList& blocks, size_t row, int64_t key_count) {
  int64_t previous = -1;
  for (int64_t at = blocks.offsets[row]; at < blocks.offsets[row + 1]; ++at) {
    const int64_t block = blocks.key_blocks[static_cast<size_t>(at)];
    if (block <= previous || block >= key_count) {
      throw Error(ErrorKind::kShape,
                  "attention: key blocks of row {} of a block list must ascend and be below {}, "
                  "found {} after {}",
                  row, key_count, block, previous);
    }
    previous = block;
  }
}

void CheckBlocks(const AttentionProblem& problem, const Mask::BlockList& blocks) {
  if (blocks.query_block < 1 || blocks.key_block < 1) {
    throw Error(ErrorKind::kUsage, "attention: blocks must be of at least 1 token, found {} x {}",
                blocks.query_block, blocks.key_block);
  }
  if (blocks.heads != 1 && blocks.heads != problem.heads) {
    throw Error(ErrorKind::kShape, "attention: a block list must be for 1 or {} heads, found {}",
                problem.heads, blocks.heads);
  }
  int64_t rows = 0;
  for (int64_t s = 0; s < problem.batch(); ++s) {
    rows += blocks.heads * BlockCount(RangeOf(problem, s).queries, blocks.query_block);
  }
  const std::vector<int64_t>& offsets = blocks.offsets;
  if (static_cast<int64_t>(offsets.size()) != rows + 1 || offsets.front() != 0 ||
      !std::is_sorted(offsets.begin(), offsets.end()) ||
      offsets.back() != static_cast<int64_t>(blocks.key_blocks.size())) {
    throw Error(ErrorKind::kShape,
                "attention: offsets of a block list must be {} (rows + 1), from 0, not decreasing, "
                "to {} (key blocks), found {}",
                rows + 1, blocks.key_blocks.size(), offsets.size());
  }
  size_t row = 0;
  for (int64_t s = 0; s < problem.batch(); ++s) {
    const SequenceRange range = RangeOf(problem, s);
    const int64_t count = blocks.heads * BlockCount(range.queries, blocks.query_block);
    for (int64_t r = 0; r < count; ++r) {
      CheckBlockRow(blocks, row++, BlockCount(range.keys, blocks.key_block));
    }
  }
}

void CheckMask(const AttentionProblem& problem) {
  const Mask& mask = problem.mask;
  if (mask.window && (mask.window->left < 0 || mask.window->right < 0)) {
    throw Error(ErrorKind::kUsage, "attention: window must be >= 0 on both sides, found {} and {}",
                mask.window->left, mask.window->right);
  }
  const size_t batch = static_cast<size_t>(problem.batch());
  if (!mask.key_lengths.empty() && mask.key_lengths.size() != batch) {
    throw Error(ErrorKind::kShape, "attention: key_lengths must be {} (one per sequence), found {}",
                batch, mask.key_lengths.size());
  }
  for (size_t s = 0; s < mask.key_lengths.size(); ++s) {
    const int64_t keys = problem.key_offsets[s + 1] - problem.key_offsets[s];
    if (mask.key_lengths[s] < 0 || mask.key_lengths[s] > keys) {
      throw Error(ErrorKind::kShape, "attention: key length of sequence {} must be 0..{}, found {}",
                  s, keys, mask.key_lengths[s]);
    }
  }
  if (!mask.query_documents.empty() || !mask.key_documents.empty()) {
    CheckDocuments("query_documents", mask.query_documents, problem.query_offsets);
    CheckDocuments("key_documents", mask.key_documents, problem.key_offsets);
  }
  if (mask.blocks) CheckBlocks(problem, *mask.blocks);
  if (mask.keep.data == nullptr) return;
  CheckScoreTensor(problem, "keep", mask.keep.shape);
}

void CheckTable(const AttentionProblem& problem, const char* name, const Tensor& table,
                int64_t width) {
  if (table.empty()) return;
  const Shape& shape = table.shape();
  const bool heads_fit = shape.rank() == 3 && (shape[0] == 1 || shape[0] == problem.heads);
  if (!heads_fit || shape[1] % 2 == 0 || shape[2] != width || table.stride(2) != 1) {
    throw Error(ErrorKind::kShape,
                "attention: {} must be [1 or {}, odd, {}] with last stride 1, found {}", name,
                problem.heads, width, shape.ToString());
  }
  if (table.dtype() != problem.dtype) {
    throw Error(ErrorKind::kShape, "attention: {} must be {}, found {}", name,
                DTypeName(problem.dtype), DTypeName(table.dtype()));
  }
}

void CheckBias(const AttentionProblem& problem) {
  if (problem.softcap && !(*problem.softcap > 0 && std::isfinite(*problem.softcap))) {
    throw Error(ErrorKind::kUsage, "attention: softcap must be positive and finite, found {}",
                *problem.softcap);
  }
  const Bias& bias = problem.bias;
  if (!bias.alibi_slopes.empty() &&
      static_cast<int64_t>(bias.alibi_slopes.size()) != problem.heads) {
    throw Error(ErrorKind::kShape, "attention: alibi_slopes must be {} (one per head), found {}",
                problem.heads, bias.alibi_slopes.size());
  }
  for (double slope : bias.alibi_slopes) {
    if (!std::isfinite(slope)) {
      throw Error(ErrorKind::kUsage, "attention: alibi_slopes must be finite, found {}", slope);
    }
  }
  if (bias.additive.empty()) return;
  CheckScoreTensor(problem, "bias", bias.additive.shape());
  if (bias.additive.dtype() != problem.dtype) {
    throw Error(ErrorKind::kShape, "attention: bias must be {}, found {}", DTypeName(problem.dtype),
                DTypeName(bias.additive.dtype()));
  }
}

void CheckGates(const AttentionProblem& problem) {
  const std::vector<double>& gates = problem.head_gates;
  if (!gates.empty() && static_cast<int64_t>(gates.size()) != problem.heads) {
    throw Error(ErrorKind::kShape, "attention: head_gates must be {} (one per head), found {}",
                problem.heads, gates.size());
  }
  for (double gate : gates) {
    if (!std::isfinite(gate)) {
      throw Error(ErrorKind::kUsage, "attention: head_gates must be finite, found {}", gate);
    }
  }
}

void CheckDropout(const AttentionProblem& problem) {
  const WeightDropout& dropout = problem.dropout;
  if (!(dropout.rate >= 0 && dropout.rate < 1)) {
    throw Error(ErrorKind::kUsage, "attention: dropout rate must be in [0, 1), found {}",
                dropout.rate);
  }
  if (dropout.rate > 0 && static_cast<int64_t>(dropout.sample_ids.size()) != problem.batch()) {
    throw Error(ErrorKind::kShape, "attention: dropout needs {} sample ids, found {}",
                problem.batch(), dropout.sample_ids.size());
  }
}

uint32_t DropoutThreshold(double rate) {
  // At most 65535, so that DropoutFactor stays finite.
  return std::min<uint32_t>(65535, static_cast<uint32_t>(std::lround(rate * 65536)));
}

}  // namespace

double AttentionProblem::EffectiveScale() const {
  return scale ? *scale : 1 / std::sqrt(static_cast<double>(head_dim));
}

void CheckAttentionProblem(const AttentionProblem& problem) {
  CheckOffsets("query_offsets", problem.query_offsets);
  CheckOffsets("key_offsets", problem.key_offsets);
  if (problem.query_offsets.size() != problem.key_offsets.size()) {
    throw Error(ErrorKind::kShape, "attention: key_offsets must be {} (as query_offsets), found {}",
                problem.query_offsets.size(), problem.key_offsets.size());
  }
  if (problem.heads < 1 || problem.kv_heads < 1 || problem.heads % problem.kv_heads != 0) {
    throw Error(ErrorKind::kShape, "attention: kv_heads must divide heads, found {} and {}",
                problem.kv_heads, problem.heads);
  }
  if (problem.head_dim < 1 || problem.value_dim < 1) {
    throw Error(ErrorKind::kShape,
                "attention: head_dim and value_dim must be at least 1, found {} and {}",
                problem.head_dim, problem.value_dim);
  }
  if (IsStorage(problem.dtype)) return CheckAttentionProblem(WideProblem(problem));
  if (problem.dtype != DType::kF32 && problem.dtype != DType::kF64) {
    throw Error(ErrorKind::kShape, "attention: dtype must be f32, f64, bf16 or f16, found {}",
                DTypeName(problem.dtype));
  }
  if (problem.precision == Precision::kBF16 && problem.dtype == DType::kF64) {
    throw Error(ErrorKind::kUsage, "attention: precision bf16 needs dtype f32, found f64");
  }
  if (!std::isfinite(problem.EffectiveScale())) {
    throw Error(ErrorKind::kUsage, "attention: scale must be finite, found {}",
                problem.EffectiveScale());
  }
  CheckMask(problem);
  CheckTable(problem, "relative keys", problem.relative.keys, problem.head_dim);
  CheckTable(problem, "relative values", problem.relative.values, problem.value_dim);
  CheckBias(problem);
  CheckGates(problem);
  CheckDropout(problem);
}

std::vector<int64_t> OffsetsOf(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> offsets = {0};
  for (int64_t length : lengths) {
    if (length < 0) {
      throw Error(ErrorKind::kShape, "attention: lengths must not be negative, found {}", length);
    }
    offsets.push_back(offsets.back() + length);
  }
  return offsets;
}

Tensor PaddedRows(const Tensor& tensor, PaddedLayout layout) {
  if (tensor.shape().rank() != 4) {
    throw Error(ErrorKind::kShape, "attention: a padded tensor must have 4 axes, found {}",
                tensor.shape().ToString());
  }
  return layout == PaddedLayout::kBatchHeadsLen ? tensor.Transpose(1, 2) : tensor;
}

std::vector<double> AlibiSlopes(int64_t heads) {
  if (heads < 1) {
    throw Error(ErrorKind::kUsage, "attention: ALiBi needs at least 1 head, found {}", heads);
  }
  int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  std::vector<double> slopes;
  for (int64_t h = 0; h < power; ++h) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(power)));
  }
  for (int64_t h = 0; static_cast<int64_t>(slopes.size()) < heads; h += 2) {
    slopes.push_back(std::exp2(-4.0 * static_cast<double>(h + 1) / static_cast<double>(power)));
  }
  return slopes;
}

namespace attention {

void CheckTensor(const AttentionProblem& problem, const char* name, const Tensor& tensor,
                 const Shape& shape) {
  // A tensor without elements may have no buffer.
  if (tensor.empty() && shape.elements() == 0) return;
  if (tensor.empty() || tensor.shape() != shape || tensor.dtype() != problem.dtype) {
    throw Error(ErrorKind::kShape, "attention: {} must be {} {}, found {} {}", name,
                DTypeName(problem.dtype), shape.ToString(),
                tensor.empty() ? "none" : DTypeName(tensor.dtype()), tensor.shape().ToString());
  }
}

void CheckTokens(const AttentionProblem& problem, const char* name, const Tensor& tensor,
                 const Shape& shape, const std::vector<int64_t>& offsets) {
  if (tensor.shape().rank() != 4) return CheckTensor(problem, name, tensor, shape);
  const Shape& padded = tensor.shape();
  if (padded[0] != problem.batch() || padded[1] < LongestOf(offsets) || padded[2] != shape[1] ||
      padded[3] != shape[2] || tensor.dtype() != problem.dtype) {
    throw Error(ErrorKind::kShape,
                "attention: padded {} must be {} [{}, >= {}, {}, {}], found {} {}", name,
                DTypeName(problem.dtype), problem.batch(), LongestOf(offsets), shape[1], shape[2],
                DTypeName(tensor.dtype()), padded.ToString());
  }
}

void CheckInputs(const AttentionProblem& problem, const AttentionInputs& inputs) {
  CheckAttentionProblem(problem);
  CheckTokens(problem, "query", inputs.query, QueryShape(problem), problem.query_offsets);
  CheckTokens(problem, "key", inputs.key, KeyShape(problem), problem.key_offsets);
  CheckTokens(problem, "value", inputs.value, ValueShape(problem), problem.key_offsets);
}

void CheckLse(const AttentionProblem& problem, const Tensor& lse) {
  CheckTensor(problem, "lse", lse, LseShape(problem));
  if (!lse.empty() && lse.stride(1) != 1) {
    throw Error(ErrorKind::kShape, "attention: lse must have last stride 1, found {}",
                lse.stride(1));
  }
}

void PrepareOutputs(const AttentionProblem& problem, AttentionOutputs& outputs) {
  if (outputs.out.empty()) {
    outputs.out = Tensor::Uninitialized(OutShape(problem), problem.dtype, MemoryTag::kActivations);
  }
  CheckTokens(problem, "out", outputs.out, OutShape(problem), problem.query_offsets);
  if (!outputs.lse.empty()) CheckLse(problem, outputs.lse);
  outputs.replaced_scores = 0;
  for (HeadWeights& wanted : outputs.weights) {
    if (wanted.sequence < 0 || wanted.sequence >= problem.batch() || wanted.head < 0 ||
        wanted.head >= problem.heads) {
      throw Error(ErrorKind::kUsage, "attention: weights of sequence {}, head {}: there are {}, {}",
                  wanted.sequence, wanted.head, problem.batch(), problem.heads);
    }
    const SequenceRange range = RangeOf(problem, wanted.sequence);
    const Shape shape{range.queries, range.keys};
    if (wanted.weights.empty()) {
      wanted.weights = Tensor::Uninitialized(shape, problem.dtype, MemoryTag::kActivations);
    }
    CheckTensor(problem, "weights", wanted.weights, shape);
  }
  if (outputs.statistics) PrepareStatistics(problem, *outputs.statistics);
}

void PrepareStatistics(const AttentionProblem& problem, HeadStatistics& statistics) {
  for (int64_t head : statistics.heads) {
    if (head < 0 || head >= problem.heads) {
      throw Error(ErrorKind::kUsage, "attention: statistics of head {}: there are {}", head,
                  problem.heads);
    }
  }
  if (!statistics.key_set.empty() &&
      static_cast<int64_t>(statistics.key_set.size()) != problem.key_tokens()) {
    throw Error(ErrorKind::kShape, "attention: key_set must be {} (key tokens), found {}",
                problem.key_tokens(), statistics.key_set.size());
  }
  if (statistics.top < 0) {
    throw Error(ErrorKind::kUsage, "attention: top must be at least 0, found {}", statistics.top);
  }
  const Shape shape{static_cast<int64_t>(statistics.heads.size()), problem.query_tokens()};
  const Shape top{shape[0], shape[1], statistics.top};
  statistics.top_weights =
      statistics.top == 0 ? Tensor() : Tensor::Zeros(top, problem.dtype, MemoryTag::kActivations);
  statistics.top_keys =
      statistics.top == 0 ? Tensor() : Tensor::Zeros(top, DType::kI32, MemoryTag::kActivations);
  for (Tensor* tensor : {&statistics.entropy, &statistics.distance, &statistics.absolute_distance,
                         &statistics.largest_weight}) {
    *tensor = Tensor::Zeros(shape, problem.dtype, MemoryTag::kActivations);
  }
  statistics.largest_key = Tensor::Zeros(shape, DType::kI32, MemoryTag::kActivations);
  statistics.set_mass = statistics.key_set.empty()
                            ? Tensor()
                            : Tensor::Zeros(shape, problem.dtype, MemoryTag::kActivations);
}

void CheckGradients(const AttentionProblem& problem, const Tensor& out_gradient,
                    const AttentionGradients& gradients) {
  CheckTokens(problem, "out gradient", out_gradient, OutShape(problem), problem.query_offsets);
  CheckTokens(problem, "query gradient", gradients.query, QueryShape(problem),
              problem.query_offsets);
  CheckTokens(problem, "key gradient", gradients.key, KeyShape(problem), problem.key_offsets);
  CheckTokens(problem, "value gradient", gradients.value, ValueShape(problem), problem.key_offsets);
  CheckTableGradient(problem, "relative keys gradient", problem.relative.keys,
                     gradients.relative_keys);
  CheckTableGradient(problem, "relative values gradient", problem.relative.values,
                     gradients.relative_values);
  if (!gradients.gates.empty()) {
    if (problem.head_gates.empty()) {
      throw Error(ErrorKind::kUsage, "attention: gate gradient: the problem has no gates");
    }
    CheckTensor(problem, "gate gradient", gradients.gates, {problem.heads});
  }
  if (gradients.bias.empty()) return;
  if (problem.bias.additive.empty()) {
    throw Error(ErrorKind::kUsage, "attention: bias gradient: the problem has no additive bias");
  }
  CheckScoreTensor(problem, "bias gradient", gradients.bias.shape());
  CheckTensor(problem, "bias gradient", gradients.bias, gradients.bias.shape());
}

void ZeroBiasGradient(AttentionGradients& gradients) {
  Tensor& bias = gradients.bias;
  if (bias.empty()) return;
  DispatchFloat(bias.dtype(), [&]<typename T>() {
    const View<T> view = bias.view<T>();
    for (int64_t s = 0; s < view.size(0); ++s) {
      for (int64_t h = 0; h < view.size(1); ++h) {
        for (int64_t i = 0; i < view.size(2); ++i) {
          for (int64_t j = 0; j < view.size(3); ++j) view(s, h, i, j) = 0;
        }
      }
    }
  });
}

void CheckTableGradient(const AttentionProblem& problem, const char* name, const Tensor& table,
                        const Tensor& gradient) {
  if (gradient.empty()) return;
  if (table.empty()) {
    throw Error(ErrorKind::kUsage, "attention: {}: the problem has no such table", name);
  }
  CheckTensor(problem, name, gradient, table.shape());
  if (gradient.stride(2) != 1) {
    throw Error(ErrorKind::kShape, "attention: {} must have last stride 1, found {}", name,
                gradient.stride(2));
  }
}

}  // namespace attention

DropoutStream::DropoutStream(const WeightDropout& dropout, int64_t sample_id, int64_t head)
    : threshold(DropoutThreshold(dropout.rate)) {
  // Two steps of derivation: (seed, layer) names the key, (step, sample id, head) the stream.
  const PhiloxKey seed{static_cast<uint32_t>(dropout.seed),
                       static_cast<uint32_t>(dropout.seed >> 32)};
  const PhiloxCounter layer = Philox(seed, {dropout.layer, 0x64726f70u /* "drop" */, 0, 0});
  const uint64_t sample = static_cast<uint64_t>(sample_id);
  const PhiloxCounter step =
      Philox({layer[0], layer[1]},
             {static_cast<uint32_t>(dropout.step), static_cast<uint32_t>(dropout.step >> 32),
              static_cast<uint32_t>(sample), static_cast<uint32_t>(sample >> 32)});
  const PhiloxCounter stream =
      Philox({step[0], step[1]}, {static_cast<uint32_t>(head), step[2], step[3], 0});
  key0 = stream[0];
  key1 = stream[1];
}

uint32_t attention::DropoutKeptBits(const DropoutStream& stream, int64_t query_block, int64_t key) {
  const PhiloxCounter draw = Philox({stream.key0, stream.key1}, {static_cast<uint32_t>(query_block),
                                                                 static_cast<uint32_t>(key), 0, 0});
  uint32_t bits = 0;
  for (uint32_t word = 0; word < 4; ++word) {
    if ((draw[word] & 0xffffu) >= stream.threshold) bits |= 1u << word;
    if (draw[word] >> 16 >= stream.threshold) bits |= 16u << word;
  }
  return bits;
}

bool DropoutKeepsWeight(const DropoutStream& stream, int64_t query, int64_t key) {
  return (attention::DropoutKeptBits(stream, query / 8, key) >> (query % 8) & 1u) != 0;
}

double DropoutFactor(const WeightDropout& dropout) {
  return 1 / (1 - DropoutThreshold(dropout.rate) / 65536.0);
}

}  // namespace headlight
