// Zones: where a training step or an inference spends its time.
//
// A Zone is a scope on the thread that drives the computation (not on workers). Off, it costs one
// relaxed load and a predicted branch. On, two clock reads; nothing is allocated until the zone
// buffer grows.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace headlight {

enum class ZoneKind {
  kData,
  kEmbedding,
  kQkvProjection,
  kAttention,  // scores, softmax and values, fused
  kOutputProjection,
  kFeedForward,
  kNorm,
  kPooling,
  kClassifier,
  kLoss,
  kOptimizer,
  kEvaluation,
  kOther,
};
inline constexpr int kZoneKinds = 13;
enum class ZonePass { kForward, kBackward, kUpdate };

const char* ZoneKindName(ZoneKind kind);
const char* ZonePassName(ZonePass pass);

struct ZoneEvent {
  ZoneKind kind;
  ZonePass pass;
  int layer;  // -1: none
  int64_t begin_ns;
  int64_t end_ns;
  double flops;          // floating-point operations done inside, 0 where it is not counted
  int64_t memory_bytes;  // growth of MemoryTotal().now inside
};

// Recording is process-wide. Start clears what was recorded.
void StartProfile();
std::vector<ZoneEvent> StopProfile();

namespace internal {
extern std::atomic<bool> profiling;
}  // namespace internal

class Zone {
 public:
  Zone(ZoneKind kind, ZonePass pass, int layer = -1, double flops = 0)
      : on_(internal::profiling.load(std::memory_order_relaxed)) {
    if (on_) Begin(kind, pass, layer, flops);
  }
  ~Zone() {
    if (on_) End();
  }
  Zone(const Zone&) = delete;
  Zone& operator=(const Zone&) = delete;

 private:
  void Begin(ZoneKind kind, ZonePass pass, int layer, double flops);
  void End();

  const bool on_;
  ZoneEvent event_;
};

}  // namespace headlight
