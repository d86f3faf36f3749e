// NumPy's .npy format (numpy/lib/format.py, versions 1.0 to 3.0): C order, little-endian.
#pragma once

#include <string>
#include <string_view>

#include "headlight/base/memory.h"
#include "headlight/io/file.h"
#include "headlight/tensor/tensor.h"

namespace headlight {

// All dtypes but bf16, which NumPy lacks (kUsage: cast first). Written atomically.
void WriteNpy(const std::string& path, const Tensor& tensor);
std::string SerializeNpy(const Tensor& tensor);

// Untrusted: kInput, with the path and the rule, for anything else than an array of ours of at most
// kMaxRank axes in C order, with exactly as many bytes as its header says.
Tensor ReadNpy(const std::string& path, MemoryTag tag, int64_t max_bytes = kDefaultReadLimit);
Tensor ParseNpy(std::string_view bytes, const std::string& name, MemoryTag tag);

}  // namespace headlight
