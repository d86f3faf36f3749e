#include "headlight/train/schedule.h"

#include <cmath>
#include <numbers>

namespace headlight {

double LearningRate(const Schedule& schedule, int64_t step) {
  const auto warmup = static_cast<double>(schedule.warmup_steps);
  const auto total = static_cast<double>(schedule.total_steps);
  const auto now = static_cast<double>(step);
  if (step < schedule.warmup_steps) return schedule.peak * (now + 1) / warmup;
  if (schedule.kind == ScheduleKind::kConstant) return schedule.peak;
  if (step >= schedule.total_steps) return 0;
  if (schedule.kind == ScheduleKind::kLinear) {
    return schedule.peak * (total - now) / (total - warmup);
  }
  const double share = (now - warmup) / (total - warmup);
  return schedule.peak * (1 + std::cos(std::numbers::pi * share)) / 2;
}

}  // namespace headlight
