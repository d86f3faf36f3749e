// What this machine can do at most, measured: the yardstick of every "share of the peak".
#pragma once

#include "headlight/kernels/precision.h"

namespace headlight {

// Fused multiply-adds of f32 vectors of the selected ISA on `threads` workers at once, in
// floating-point operations per second (an FMA counts two). The best of several tries within about
// `seconds`. Throws kUsage for threads < 1.
double MeasureFmaPeak(int threads, double seconds = 0.03);

// The same for products of a precision: MeasureFmaPeak for kF32, and for kBF16 too where
// SelectedBf16Unit() is kNone.
double MeasurePeak(Precision precision, int threads, double seconds = 0.03);

// Bytes per second read from memory by `threads` workers at once, from buffers that no cache below
// the last level holds. The best of several tries.
double MeasureReadBandwidth(int threads, double seconds = 0.03);

}  // namespace headlight
