// The textbook implementations behind attention_implementation.h. Arguments are checked.
#pragma once

#include "headlight/kernels/attention/attention_implementation.h"

namespace headlight::attention {

struct Textbook {
  AttentionImplementation implementation;  // kNaive or kPerHead
  AttentionPass::Matrices& matrices;       // from the forward to the backward pass
};

// Throw kShape where the columns of a tensor are not adjacent.
void TextbookForward(const Textbook& textbook, const AttentionProblem& problem,
                     const AttentionInputs& inputs, AttentionOutputs& outputs);
void TextbookBackward(const Textbook& textbook, const AttentionProblem& problem,
                      const AttentionInputs& inputs, const Tensor& out_gradient,
                      AttentionGradients& gradients);

}  // namespace headlight::attention
