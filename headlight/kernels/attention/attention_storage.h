// Attention on tensors in the half formats: bf16 and f16 are for storage, the kernels see f32.
#pragma once

#include <functional>

#include "headlight/kernels/attention/attention.h"

namespace headlight::attention {

// The problem in f32; bf16 operands where the tensors are bf16.
AttentionProblem WideProblem(const AttentionProblem& problem);

// What computes in f32. `stored`: the tensors in their own format.
using WideForward =
    std::function<void(const AttentionProblem& problem, const AttentionInputs& inputs,
                       const AttentionInputs& stored, AttentionOutputs& outputs)>;
using WideBackward = std::function<void(
    const AttentionProblem& problem, const AttentionInputs& inputs, const AttentionOutputs& outputs,
    const Tensor& out_gradient, AttentionGradients& gradients)>;

// Checks the tensors of tokens, calls `run` on f32 copies of the inputs, and writes `out` in its
// format. The bf16 keys and values of a sequence that decodes (DecodesInPlace) are not copied under
// kAllButDecoded: `run` finds them in `stored`.
enum class Copy { kAll, kAllButDecoded };
void ForwardByF32(const AttentionProblem& problem, const AttentionInputs& inputs, Copy copy,
                  AttentionOutputs& outputs, const WideForward& run);
void BackwardByF32(const AttentionProblem& problem, const AttentionInputs& inputs,
                   const AttentionOutputs& outputs, const Tensor& out_gradient,
                   AttentionGradients& gradients, const WideBackward& run);
// f32 copies of the inputs, ragged.
AttentionInputs WideInputs(const AttentionProblem& problem, const AttentionInputs& inputs);

}  // namespace headlight::attention
