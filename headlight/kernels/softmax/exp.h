// The vector exponentials of exp-inl.h over arrays, compiled once per instruction set: the door for
// tests and for callers without vector code of their own.
#pragma once

#include <cstdint>

namespace headlight {

// y[i] = e^x[i]; y may be x.
void ExpArray(const float* x, int64_t count, float* y);
// The same for x <= 0.
void ExpNonPositiveArray(const float* x, int64_t count, float* y);
// y[i] = 2^x[i] for x <= 0.
void Exp2NonPositiveArray(const float* x, int64_t count, float* y);

}  // namespace headlight
