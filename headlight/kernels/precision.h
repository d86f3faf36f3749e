// In which format the operands of products are.
#pragma once

namespace headlight {

// Sums, softmax, norms, losses, weights as they are trained and optimizer state are f32 in either.
enum class Precision {
  kF32,
  kBF16,  // operands rounded to bf16 (nearest, ties to even) as they are packed; sums in f32
};

}  // namespace headlight
