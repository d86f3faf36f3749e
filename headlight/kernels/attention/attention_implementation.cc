#include "headlight/kernels/attention/attention_implementation.h"

#include <fmt/format.h>

#include <utility>

#include "headlight/base/error.h"
#include "headlight/kernels/attention/attention_internal.h"
#include "headlight/kernels/attention/attention_storage.h"
#include "headlight/kernels/attention/attention_textbook.h"
#include "headlight/kernels/half_formats.h"

namespace headlight {
namespace {

// Throws kUsage for what the textbook implementations do not compute.
void RefuseForTextbook(AttentionImplementation implementation, const AttentionProblem& problem) {
  const auto refuse = [&](bool there, const char* what) {
    if (!there) return;
    throw Error(ErrorKind::kUsage, "attention: {} does not compute {}; use fused",
                Name(implementation), what);
  };
  refuse(IsStorage(problem.dtype), "bf16 or f16");
  refuse(!problem.mask.query_documents.empty(), "document boundaries");
  refuse(problem.mask.blocks.has_value(), "block lists");
  refuse(problem.softcap.has_value(), "a softcap");
  refuse(!problem.bias.additive.empty(), "an additive bias");
  refuse(!problem.head_gates.empty(), "gates of heads");
}

// The probes of `outputs`, answered by the fused kernels; their `out` is thrown away.
void AnswerProbes(const AttentionProblem& problem, const AttentionInputs& inputs,
                  AttentionOutputs& outputs) {
  if (outputs.weights.empty() && !outputs.statistics) return;
  AttentionOutputs seen;
  seen.weights = std::move(outputs.weights);
  seen.statistics = std::move(outputs.statistics);
  AttentionForward(problem, inputs, seen);
  outputs.weights = std::move(seen.weights);
  outputs.statistics = std::move(seen.statistics);
}

}  // namespace

const char* Name(AttentionImplementation implementation) {
  switch (implementation) {
    case AttentionImplementation::kFused:
      return "fused";
    case AttentionImplementation::kNaive:
      return "naive";
    case AttentionImplementation::kPerHead:
      return "per-head";
  }
  return "";
}

std::string AttentionKernelName(AttentionImplementation implementation,
                                const AttentionProblem& problem) {
  if (implementation == AttentionImplementation::kFused) return PlanAttention(problem).kernel;
  return fmt::format("{} {}", Name(implementation),
                     problem.precision == Precision::kBF16 ? "bf16" : DTypeName(problem.dtype));
}

void AttentionPass::Forward(AttentionImplementation implementation, const AttentionProblem& problem,
                            const AttentionInputs& inputs, AttentionOutputs& outputs) {
  implementation_ = implementation;
  if (implementation == AttentionImplementation::kFused) {
    CheckAttentionProblem(problem);  // before its sizes are used
    if (outputs.lse.empty()) {
      const DType dtype = IsStorage(problem.dtype) ? DType::kF32 : problem.dtype;
      outputs.lse = own_lse_.Get(attention::LseShape(problem), dtype);
    }
    lse_ = outputs.lse;
    return AttentionForward(problem, inputs, outputs);
  }
  attention::CheckInputs(problem, inputs);
  RefuseForTextbook(implementation, problem);
  attention::PrepareOutputs(problem, outputs);
  AnswerProbes(problem, inputs, outputs);
  attention::TextbookForward({implementation, matrices_}, problem, inputs, outputs);
}

void AttentionPass::Backward(const AttentionProblem& problem, const AttentionInputs& inputs,
                             const Tensor& out, const Tensor& out_gradient,
                             AttentionGradients& gradients) {
  if (implementation_ == AttentionImplementation::kFused) {
    AttentionOutputs outputs;
    outputs.out = out;
    outputs.lse = lse_;
    return AttentionBackward(problem, inputs, outputs, out_gradient, gradients);
  }
  attention::CheckInputs(problem, inputs);
  attention::CheckGradients(problem, out_gradient, gradients);
  attention::TextbookBackward({implementation_, matrices_}, problem, inputs, out_gradient,
                              gradients);
}

}  // namespace headlight
