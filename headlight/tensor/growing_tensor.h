// A buffer that lives across steps and only grows: after the largest batch nothing is allocated.
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

}  // namespace headlight
