// Every tensor buffer is charged to a tag; the peak of each tag is what reports call memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace headlight {

enum class MemoryTag { kParameters, kGradients, kOptimizer, kActivations, kWorkspace, kOther };
inline constexpr int kMemoryTags = 6;

// "parameters", "gradients", ...
const char* MemoryTagName(MemoryTag tag);

struct MemoryUse {
  int64_t now = 0;   // bytes
  int64_t peak = 0;  // bytes, since the last ResetMemoryPeaks
};

MemoryUse MemoryOf(MemoryTag tag);
// All tags together; its peak is the peak of the sum, not the sum of the peaks.
MemoryUse MemoryTotal();
void ResetMemoryPeaks();

// Largest resident size since the last ResetMemoryPeaks, and the present one, in bytes (Linux).
int64_t PeakResidentBytes();
int64_t ResidentBytes();

inline constexpr size_t kBufferAlignment = 64;

// A zero-filled, 64-byte-aligned, counted buffer, charged to `tag` until the last owner lets go.
// Throws kResource.
std::shared_ptr<std::byte> AllocateBuffer(size_t bytes, MemoryTag tag);
// The same without the fill, for buffers that are about to be overwritten.
std::shared_ptr<std::byte> AllocateUninitializedBuffer(size_t bytes, MemoryTag tag);

}  // namespace headlight
