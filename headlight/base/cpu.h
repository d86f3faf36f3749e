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

// What multiplies pairs of bf16 and adds to f32.
enum class Bf16Unit {
  kNone,        // nothing does: operands are rounded, the products are f32
  kAvx512Bf16,  // vdpbf16ps
  kAmx,         // tdpbf16ps, on tiles of 16 x 16
};

// "none", "avx512_bf16", "amx".
const char* Bf16UnitName(Bf16Unit unit);

// Whether this CPU and system have it under SelectedIsa().
bool MachineHas(Bf16Unit unit);

// The best that this CPU and system have under SelectedIsa() (kNone but for kAvx512), or the one
// that HEADLIGHT_BF16 names. Decided at the first call. Throws kUsage as SelectedIsa does.
Bf16Unit SelectedBf16Unit();

// The CPU's own bit (not limited by HEADLIGHT_ISA).
bool CpuHasAvx512Vnni();

// "AMD EPYC ...", as the system names it.
std::string CpuModelName();

}  // namespace headlight
