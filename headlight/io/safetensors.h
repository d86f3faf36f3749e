// The safetensors format (github.com/huggingface/safetensors): 8 bytes little-endian header length,
// a JSON header {"name": {"dtype", "shape", "data_offsets"}, "__metadata__": {string: string}},
// then the tensors' bytes without gaps.
//
// The writer is deterministic: the same tensors and metadata give the same bytes (names sorted
// within sizes of elements, so that every tensor is aligned to its own element; the data begin at a
// multiple of 64 bytes). Files are untrusted: whatever is wrong with one is an Error of kind kInput
// that names the file and the rule, and no memory is taken for what the file does not hold.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "headlight/base/memory.h"
#include "headlight/io/file.h"
#include "headlight/tensor/tensor.h"

namespace headlight {

struct Safetensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Any dtype of ours, any strides (a strided tensor is written gathered). kInternal for an empty
// Tensor, for a name that is empty, "__metadata__" or not UTF-8. WriteFileAtomically's promise
// holds.
void WriteSafetensors(const std::string& path, const Safetensors& contents);
std::string SerializeSafetensors(const Safetensors& contents);

struct ReadSafetensorsOptions {
  MemoryTag tag = MemoryTag::kParameters;  // what the tensors' memory is charged to
  int64_t max_bytes = int64_t{64} << 30;   // of the file
};

// Tensors own their memory, contiguous. kInput for dtypes or ranks (over kMaxRank) we do not have.
Safetensors ReadSafetensors(const std::string& path, const ReadSafetensorsOptions& options = {});
// Without reading the tensors.
std::map<std::string, std::string> ReadSafetensorsMetadata(const std::string& path);
// ReadSafetensors from memory; `name` stands for the path in messages.
Safetensors ParseSafetensors(std::string_view bytes, const std::string& name,
                             const ReadSafetensorsOptions& options = {});

}  // namespace headlight
