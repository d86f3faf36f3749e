#include "headlight/kernels/attention/attention_storage.h"

#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_internal.h"
#include "headlight/kernels/half_formats.h"

namespace headlight::attention {
namespace {

// Where the rows of a sequence begin in a ragged or padded tensor of tokens.
template <typename T, typename TensorT>
auto* SequenceData(TensorT& tensor, int64_t sequence, int64_t first_token) {
  const int64_t row = tensor.shape().rank() == 4 ? sequence : first_token;
  return tensor.template data<T>() + row * tensor.stride(0);
}

struct TokenStrides {
  explicit TokenStrides(const Tensor& tensor)
      : token(tensor.stride(tensor.shape().rank() == 4 ? 1 : 0)),
        head(tensor.stride(tensor.shape().rank() - 2)),
        column(tensor.stride(tensor.shape().rank() - 1)) {}
  int64_t token, head, column;
};

using SequenceChoice = std::function<bool(int64_t sequence)>;

// A ragged f32 copy; rows of sequences that are not `wanted` are not written.
Tensor Widened(const Tensor& tensor, const std::vector<int64_t>& offsets, const Shape& shape,
               const SequenceChoice& wanted) {
  Tensor wide = Tensor::Uninitialized(shape, DType::kF32, MemoryTag::kWorkspace);
  if (tensor.empty()) return wide;
  const int64_t heads = shape[1], columns = shape[2];
  const TokenStrides strides(tensor);
  DispatchStorage(tensor.dtype(), [&]<typename T>() {
    ParallelFor(static_cast<int64_t>(offsets.size()) - 1, [&](int64_t s, int) {
      if (!wanted(s)) return;
      const auto at = static_cast<size_t>(s);
      if (offsets[at] == offsets[at + 1]) return;
      const T* from = SequenceData<T>(tensor, s, offsets[at]);
      float* to = wide.data<float>() + offsets[at] * heads * columns;
      for (int64_t i = offsets[at]; i < offsets[at + 1]; ++i, from += strides.token) {
        for (int64_t h = 0; h < heads; ++h, to += columns) {
          const T* row = from + h * strides.head;
          for (int64_t c = 0; c < columns; ++c) to[c] = ToFloat(row[c * strides.column]);
        }
      }
    });
  });
  return wide;
}

// A ragged f32 tensor into one of another format, ragged or padded.
void Narrow(const Tensor& wide, const std::vector<int64_t>& offsets, Tensor& tensor) {
  if (tensor.empty() || wide.empty()) return;
  const int64_t heads = wide.size(1), columns = wide.size(2);
  const TokenStrides strides(tensor);
  DispatchStorage(tensor.dtype(), [&]<typename T>() {
    ParallelFor(static_cast<int64_t>(offsets.size()) - 1, [&](int64_t s, int) {
      const auto at = static_cast<size_t>(s);
      if (offsets[at] == offsets[at + 1]) return;
      const float* from = wide.data<float>() + offsets[at] * heads * columns;
      T* to = SequenceData<T>(tensor, s, offsets[at]);
      for (int64_t i = offsets[at]; i < offsets[at + 1]; ++i, to += strides.token) {
        for (int64_t h = 0; h < heads; ++h, from += columns) {
          T* row = to + h * strides.head;
          for (int64_t c = 0; c < columns; ++c) row[c * strides.column] = FromFloat<T>(from[c]);
        }
      }
    });
  });
}

bool Always(int64_t) { return true; }

// Keys or values; where no sequence is wanted, rows that lie in one place and are not there.
Tensor WidenedKeys(const AttentionProblem& problem, const Tensor& tensor, const Shape& shape,
                   const SequenceChoice& wanted) {
  for (int64_t s = 0; s < problem.batch(); ++s) {
    if (wanted(s)) return Widened(tensor, problem.key_offsets, shape, wanted);
  }
  const Shape one{1, shape[1], shape[2]};
  return Tensor::Uninitialized(one, DType::kF32, MemoryTag::kWorkspace).Repeat(0, shape[0]);
}

AttentionInputs WideInputs(const AttentionProblem& problem, const AttentionInputs& inputs,
                           const SequenceChoice& wanted) {
  return {Widened(inputs.query, problem.query_offsets, QueryShape(problem), Always),
          WidenedKeys(problem, inputs.key, KeyShape(problem), wanted),
          WidenedKeys(problem, inputs.value, ValueShape(problem), wanted)};
}

}  // namespace

AttentionProblem WideProblem(const AttentionProblem& problem) {
  AttentionProblem wide = problem;
  wide.dtype = DType::kF32;
  if (problem.dtype == DType::kBF16) wide.precision = Precision::kBF16;
  return wide;
}

AttentionInputs WideInputs(const AttentionProblem& problem, const AttentionInputs& inputs) {
  return WideInputs(problem, inputs, Always);
}

void ForwardByF32(const AttentionProblem& problem, const AttentionInputs& inputs, Copy copy,
                  AttentionOutputs& outputs, const WideForward& run) {
  CheckInputs(problem, inputs);
  if (outputs.out.empty()) {
    outputs.out = Tensor::Uninitialized(OutShape(problem), problem.dtype, MemoryTag::kActivations);
  }
  CheckTokens(problem, "out", outputs.out, OutShape(problem), problem.query_offsets);
  const bool probed = !outputs.weights.empty() || outputs.statistics;
  const AttentionInputs wide = WideInputs(problem, inputs, [&](int64_t s) {
    return copy == Copy::kAll || probed || problem.dtype != DType::kBF16 ||
           !DecodesInPlace(problem, inputs, s);
  });
  Tensor out = outputs.out;
  outputs.out = Tensor::Uninitialized(OutShape(problem), DType::kF32, MemoryTag::kWorkspace);
  run(WideProblem(problem), wide, inputs, outputs);
  Narrow(outputs.out, problem.query_offsets, out);
  outputs.out = out;
}

void BackwardByF32(const AttentionProblem& problem, const AttentionInputs& inputs,
                   const AttentionOutputs& outputs, const Tensor& out_gradient,
                   AttentionGradients& gradients, const WideBackward& run) {
  CheckInputs(problem, inputs);
  CheckTokens(problem, "out gradient", out_gradient, OutShape(problem), problem.query_offsets);
  CheckTokens(problem, "query gradient", gradients.query, QueryShape(problem),
              problem.query_offsets);
  CheckTokens(problem, "key gradient", gradients.key, KeyShape(problem), problem.key_offsets);
  CheckTokens(problem, "value gradient", gradients.value, ValueShape(problem), problem.key_offsets);
  AttentionOutputs wide_outputs = outputs;
  if (!outputs.out.empty()) {
    CheckTokens(problem, "out", outputs.out, OutShape(problem), problem.query_offsets);
    wide_outputs.out = Widened(outputs.out, problem.query_offsets, OutShape(problem), Always);
  }
  AttentionGradients wide = gradients;
  const auto uninitialized = [](const Shape& shape) {
    return Tensor::Uninitialized(shape, DType::kF32, MemoryTag::kWorkspace);
  };
  wide.query = uninitialized(QueryShape(problem));
  wide.key = uninitialized(KeyShape(problem));
  wide.value = uninitialized(ValueShape(problem));
  run(WideProblem(problem), WideInputs(problem, inputs), wide_outputs,
      Widened(out_gradient, problem.query_offsets, OutShape(problem), Always), wide);
  Narrow(wide.query, problem.query_offsets, gradients.query);
  Narrow(wide.key, problem.key_offsets, gradients.key);
  Narrow(wide.value, problem.key_offsets, gradients.value);
}

}  // namespace headlight::attention
