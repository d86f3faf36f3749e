// What layers share while they work.
#pragma once

#include "headlight/tensor/growing_tensor.h"

namespace headlight {

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
