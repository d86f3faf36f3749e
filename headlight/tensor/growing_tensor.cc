#include "headlight/tensor/growing_tensor.h"

namespace headlight {

Tensor& GrowingTensor::Get(const Shape& shape, DType dtype) {
  if (whole_.empty() || whole_.dtype() != dtype || whole_.elements() < shape.elements()) {
    // The old buffer goes first, so that both never lie in memory at once.
    whole_ = Tensor();
    tensor_ = Tensor();
    whole_ = Tensor::Uninitialized({shape.elements()}, dtype, tag_);
  }
  tensor_ = whole_.Slice(0, 0, shape.elements()).Reshape(shape);
  return tensor_;
}

}  // namespace headlight
