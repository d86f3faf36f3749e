#include "headlight/base/profiler.h"

#include <array>
#include <mutex>
#include <utility>

#include "headlight/base/clock.h"
#include "headlight/base/memory.h"

namespace headlight {
namespace internal {
std::atomic<bool> profiling{false};
}

namespace {

struct Recording {
  std::mutex mutex;
  std::vector<ZoneEvent> events;
};

Recording& TheRecording() {
  static Recording recording;
  return recording;
}

}  // namespace

const char* ZoneKindName(ZoneKind kind) {
  static constexpr std::array<const char*, kZoneKinds> kNames = {
      "data",         "embedding",  "qkv projection", "attention",  "output projection",
      "feed-forward", "norm",       "pooling",        "classifier", "loss",
      "optimizer",    "evaluation", "other"};
  return kNames[static_cast<size_t>(kind)];
}

const char* ZonePassName(ZonePass pass) {
  switch (pass) {
    case ZonePass::kForward:
      return "forward";
    case ZonePass::kBackward:
      return "backward";
    case ZonePass::kUpdate:
      return "update";
  }
  return "";
}

void StartProfile() {
  Recording& recording = TheRecording();
  std::lock_guard<std::mutex> lock(recording.mutex);
  recording.events.clear();
  internal::profiling.store(true, std::memory_order_relaxed);
}

std::vector<ZoneEvent> StopProfile() {
  Recording& recording = TheRecording();
  internal::profiling.store(false, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(recording.mutex);
  return std::exchange(recording.events, {});
}

void Zone::Begin(ZoneKind kind, ZonePass pass, int layer, double flops) {
  event_ = {kind, pass, layer, 0, 0, flops, MemoryTotal().now};
  event_.begin_ns = MonotonicNanoseconds();
}

void Zone::End() {
  event_.end_ns = MonotonicNanoseconds();
  event_.memory_bytes = MemoryTotal().now - event_.memory_bytes;
  Recording& recording = TheRecording();
  std::lock_guard<std::mutex> lock(recording.mutex);
  recording.events.push_back(event_);
}

}  // namespace headlight
