// Learning-rate schedules.
#pragma once

#include <cstdint>

namespace headlight {

enum class ScheduleKind { kConstant, kLinear, kCosine };

struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double peak = 0.001;       // the learning rate after the warm-up
  int64_t warmup_steps = 0;  // rises linearly from peak / warmup_steps
  int64_t total_steps = 0;   // linear and cosine reach 0 here; unused by constant
};

// The learning rate of step `step` (0-based):
//   step < warmup:  peak * (step + 1) / warmup
//   constant:       peak
//   linear:         peak * (total - step) / (total - warmup)
//   cosine:         peak * (1 + cos(pi * (step - warmup) / (total - warmup))) / 2
//                   (Loshchilov & Hutter 2017, eq. 5, without restarts)
// 0 from total_steps on, for linear and cosine.
double LearningRate(const Schedule& schedule, int64_t step);

}  // namespace headlight
