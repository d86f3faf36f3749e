// Buffers that live across steps and only grow: after the largest batch nothing is allocated.
#pragma once

#include "headlight/tensor/tensor.h"

namespace headlight {

class GrowingTensor {
 public:
  explicit GrowingTensor(MemoryTag tag = MemoryTag::kActivations) : tag_(tag) {}

  // A contiguous tensor with undefined contents; on the buffer of the call before when that is
  // large enough and of that dtype. Tensors of earlier calls then share it: they are no longer
  // valid.
  Tensor& Get(const Shape& shape, DType dtype);

  // What the last Get gave.
  Tensor& tensor() { return tensor_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  MemoryTag tag_;
  Tensor whole_;  // [capacity]
  Tensor tensor_;
};

// Temporaries that all layers of a model use in turn. Nothing in it outlives a layer's call, except
// where a comment at the call says so.
struct Workspace {
  GrowingTensor branch{MemoryTag::kWorkspace};      // [tokens, dim]: gradient of a residual branch
  GrowingTensor attention{MemoryTag::kWorkspace};   // [tokens, heads * head_dim]
  GrowingTensor projected{MemoryTag::kWorkspace};   // [tokens, 3 * heads * head_dim]
  GrowingTensor memory{MemoryTag::kWorkspace};      // [memory tokens, 2 * heads * head_dim]
  GrowingTensor normed{MemoryTag::kWorkspace};      // [tokens, dim]: gradient of a norm's output
  GrowingTensor hidden{MemoryTag::kWorkspace};      // [rows of a chunk, feed_forward]
  GrowingTensor activation{MemoryTag::kWorkspace};  // the same shape, for GELU
};

}  // namespace headlight
