// Recorded zones (base/profiler.h) as a table of stages and as a trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/base/profiler.h"
#include "headlight/report/table.h"

namespace headlight {

// A stage is a kind and pass over all layers; nested zones count once, in the innermost.
struct ProfileStage {
  std::string name;  // "attention, backward"
  int64_t calls = 0;
  double seconds = 0;
  double share = 0;  // of the recorded time
  double flops = 0;
  int64_t memory_bytes = 0;  // growth of tensor memory inside, in all
};

struct ProfileSummary {
  std::vector<ProfileStage> stages;  // the slowest first; "between zones" is what no zone covers
  double seconds = 0;                // from the first zone's begin to the last one's end
  double flops = 0;
};

ProfileSummary SummarizeProfile(const std::vector<ZoneEvent>& events);

// The `most` slowest stages and a line for all. peak: flop/s that the machine reaches.
Table ProfileTable(const ProfileSummary& summary, double peak, size_t most);

// The Trace Event Format that chrome://tracing and Perfetto open; times from the first event.
std::string ProfileTrace(const std::vector<ZoneEvent>& events);

}  // namespace headlight
