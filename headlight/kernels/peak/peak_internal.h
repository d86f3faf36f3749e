// The loop behind MeasurePeak in bf16 (peak_bf16.cc).
#pragma once

#include <cstdint>

#include "headlight/base/cpu.h"

namespace headlight::internal {

// Multiplies pairs by a unit that this machine has, not kNone, in registers alone; the
// floating-point operations done.
double PairProductLoop(Bf16Unit unit, int64_t rounds);

}  // namespace headlight::internal
