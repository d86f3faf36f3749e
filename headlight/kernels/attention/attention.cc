// Entry points: checks, then the kernel that the plan names.
#include "headlight/kernels/attention/attention.h"

#include <fmt/format.h>

#include "headlight/base/cpu.h"
#include "headlight/base/error.h"
#include "headlight/kernels/attention/attention_internal.h"

namespace headlight {

std::string AttentionPlan::ToString() const {
  std::string text = kernel;
  if (query_rows > 0) {
    text += fmt::format(", tiles of {} queries, blocks of {} queries and {} keys", query_rows,
                        query_block, key_block);
  }
  for (const std::string& refusal : refusals) text += "\n  not " + refusal;
  return text;
}

AttentionPlan PlanAttention(const AttentionProblem& problem) {
  CheckAttentionProblem(problem);
  AttentionPlan plan;
  plan.kernel = fmt::format("reference {}", DTypeName(problem.dtype));
  return plan;
}

void AttentionForward(const AttentionProblem& problem, const AttentionInputs& inputs,
                      AttentionOutputs& outputs) {
  AttentionForwardReference(problem, inputs, outputs);
}

void AttentionBackward(const AttentionProblem& problem, const AttentionInputs& inputs,
                       const AttentionOutputs& outputs, const Tensor& out_gradient,
                       AttentionGradients& gradients) {
  attention::CheckTensor(problem, "out", outputs.out, attention::OutShape(problem));
  attention::CheckTensor(problem, "lse", outputs.lse, attention::LseShape(problem));
  AttentionBackwardReference(problem, inputs, out_gradient, gradients);
}

}  // namespace headlight
