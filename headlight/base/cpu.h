// What this CPU is, and which instruction set the kernels use.
#pragma once

#include <cstdint>
#include <string>

namespace headlight {

// The vector code paths that are built; kBaseline is what every machine of the architecture has.
enum class Isa { kBaseline, kAvx2, kAvx512, kNeon };

// "baseline", "avx2", "avx512", "neon".
const char* IsaName(Isa isa);

// The best path that this CPU has, or the one that HEADLIGHT_ISA names. Decided at the first call
// and fixed from then on; that call also limits Highway's and oneDNN's dispatch to it. Throws
// kUsage when HEADLIGHT_ISA names none of the four or one that this CPU lacks.
Isa SelectedIsa();

// The CPU's own bits (not limited by HEADLIGHT_ISA).
bool CpuHasAvx512Bf16();
bool CpuHasAvx512Vnni();

// "AMD EPYC ...", as the system names it.
std::string CpuModelName();

}  // namespace headlight
