// Attention by an implementation of choice. All compute what attention.h says, with the same draws
// of dropout; they differ in time, in memory, and in rounding.
#pragma once

#include <string>

#include "headlight/kernels/attention/attention.h"
#include "headlight/tensor/growing_tensor.h"

namespace headlight {

enum class AttentionImplementation {
  kFused,  // attention.h: no n x n matrix is ever in memory
  // Vaswani et al. 2017, equation 1, as textbooks write it: the scores of all heads by matrix
  // products, mask, softmax, dropout and product one after another over whole n x n matrices, which
  // are kept for the backward pass.
  kNaive,
  // The same for one head after another, each on its own copies of queries, keys and values, as
  // many first programs do.
  kPerHead,
};

// "fused", "naive", "per-head".
const char* Name(AttentionImplementation implementation);

// "fused f32 avx512", "naive f32", "per-head f64": what runs for this problem.
std::string AttentionKernelName(AttentionImplementation implementation,
                                const AttentionProblem& problem);

// One forward pass and its backward pass. In between it keeps, charged to the activations, what the
// implementation needs: one number per query and head, or the n x n matrices of all heads.
class AttentionPass {
 public:
  // As headlight::AttentionForward, by `implementation`. kNaive and kPerHead need [tokens, heads,
  // width] with adjacent columns (else kShape), and refuse documents, block lists, softcap,
  // additive biases and gates (kUsage). Weights and statistics that are asked for come from the
  // fused kernels, whatever computes `out`.
  void Forward(AttentionImplementation implementation, const AttentionProblem& problem,
               const AttentionInputs& inputs, AttentionOutputs& outputs);

  // As headlight::AttentionBackward, by the implementation of the last Forward, which must have
  // been of the same problem and inputs. `out` is what it wrote.
  void Backward(const AttentionProblem& problem, const AttentionInputs& inputs, const Tensor& out,
                const Tensor& out_gradient, AttentionGradients& gradients);

  // Of kNaive and kPerHead: flat, sequence after sequence, head after head, [Lq, Lk] each.
  struct Matrices {
    GrowingTensor weights;  // after softmax
    GrowingTensor dropped;  // after dropout; not there when nothing is dropped
    GrowingTensor flags;    // u8: kept, dropped, replaced
  };

 private:
  AttentionImplementation implementation_ = AttentionImplementation::kFused;
  GrowingTensor own_lse_;  // of kFused: where the caller wants none
  Tensor lse_;             // that, or the caller's
  Matrices matrices_;
};

}  // namespace headlight
