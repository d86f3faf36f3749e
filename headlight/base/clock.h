// Time: a monotonic clock for measuring, and the wall clock for stamping.
#pragma once

#include <cstdint>
#include <string>

namespace headlight {

int64_t MonotonicNanoseconds();
double MonotonicSeconds();
// UTC, ISO 8601 with seconds: 2026-01-31T12:34:56Z.
std::string UtcTimestamp();
// Seconds since 1970, for formats that want it (TensorBoard).
double WallSeconds();

}  // namespace headlight
