#include "headlight/base/memory.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "headlight/base/error.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace headlight {
namespace {

struct Counter {
  std::atomic<int64_t> now{0};
  std::atomic<int64_t> peak{0};

  void Add(int64_t bytes) {
    const int64_t value = now.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t seen = peak.load(std::memory_order_relaxed);
    while (value > seen && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
};

// The last counter is the total. Never destroyed: buffers may outlive static objects.
std::array<Counter, kMemoryTags + 1>& Counters() {
  static auto* counters = new std::array<Counter, kMemoryTags + 1>;
  return *counters;
}

MemoryUse Read(const Counter& counter) {
  return {counter.now.load(std::memory_order_relaxed),
          counter.peak.load(std::memory_order_relaxed)};
}

void Charge(MemoryTag tag, int64_t bytes) {
  Counters()[static_cast<size_t>(tag)].Add(bytes);
  Counters()[kMemoryTags].Add(bytes);
}

// A line of /proc/self/status that is given in kB.
int64_t StatusBytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == name) {
      int64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes * 1024;
    }
  }
  return 0;
}

// Buffers of this size and more lie in huge pages where the system gives them. The kernels walk
// through rows that are kilobytes apart: with small pages nearly every row misses the TLB.
constexpr size_t kHugePage = size_t{2} << 20;

// nullptr when there is no memory.
void* Allocate(size_t bytes) {
  const size_t rounded = (bytes / kBufferAlignment + 1) * kBufferAlignment;
  if (rounded <= bytes) return nullptr;
  void* data = nullptr;
  const size_t alignment = bytes >= kHugePage ? kHugePage : kBufferAlignment;
  if (posix_memalign(&data, alignment, rounded) != 0) return nullptr;
#if defined(__linux__)
  // A request only: whether it is granted changes nothing but speed.
  if (bytes >= kHugePage) madvise(data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  return data;
}

}  // namespace

const char* MemoryTagName(MemoryTag tag) {
  static constexpr std::array<const char*, kMemoryTags> kNames = {
      "parameters", "gradients", "optimizer", "activations", "workspace", "other"};
  return kNames[static_cast<size_t>(tag)];
}

MemoryUse MemoryOf(MemoryTag tag) { return Read(Counters()[static_cast<size_t>(tag)]); }

MemoryUse MemoryTotal() { return Read(Counters()[kMemoryTags]); }

void ResetMemoryPeaks() {
#ifdef __GLIBC__
  malloc_trim(0);  // what earlier work freed is not part of a peak to come
#endif
  // "5" sets the peak resident size back to the present one (proc(5)); where that is not allowed,
  // the peak is that of the whole process.
  std::ofstream("/proc/self/clear_refs") << "5";
  for (Counter& counter : Counters()) {
    counter.peak.store(counter.now.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
}

int64_t PeakResidentBytes() { return StatusBytes("VmHWM:"); }

int64_t ResidentBytes() { return StatusBytes("VmRSS:"); }

std::shared_ptr<std::byte> AllocateUninitializedBuffer(size_t bytes, MemoryTag tag) {
  void* data = Allocate(bytes);
  if (data == nullptr) {
    throw Error(ErrorKind::kResource, "memory: {} bytes for {} could not be had", bytes,
                MemoryTagName(tag));
  }
  const auto charged = static_cast<int64_t>(bytes);
  Charge(tag, charged);
  return {static_cast<std::byte*>(data), [tag, charged](std::byte* pointer) {
            std::free(pointer);
            Charge(tag, -charged);
          }};
}

std::shared_ptr<std::byte> AllocateBuffer(size_t bytes, MemoryTag tag) {
  std::shared_ptr<std::byte> buffer = AllocateUninitializedBuffer(bytes, tag);
  std::memset(buffer.get(), 0, bytes);
  return buffer;
}

}  // namespace headlight
