#include "headlight/base/cpu.h"

#include <cstdlib>
#include <fstream>
#include <string_view>

#include "headlight/base/error.h"
#include "hwy/targets.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace headlight {
namespace {

// Highway names AVX-512 with VNNI and friends AVX3_DL; both are one path here. Its 128-bit x86
// targets count as the baseline, whichever of them the compiler's flags make it.
constexpr int64_t kAvx512Targets = HWY_AVX3_DL | HWY_AVX3;
constexpr int64_t kBaselineTargets = HWY_EMU128 | HWY_SCALAR | HWY_SSSE3 | HWY_SSE4;

Isa BestIsa(int64_t targets) {
  if (targets & kAvx512Targets) return Isa::kAvx512;
  if (targets & HWY_AVX2) return Isa::kAvx2;
  if (targets & HWY_NEON) return Isa::kNeon;
  return Isa::kBaseline;
}

int64_t TargetsUpTo(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      return kAvx512Targets | HWY_AVX2 | kBaselineTargets;
    case Isa::kAvx2:
      return HWY_AVX2 | kBaselineTargets;
    case Isa::kNeon:
      return HWY_NEON | kBaselineTargets;
    case Isa::kBaseline:
      break;
  }
  return kBaselineTargets;
}

Isa ParseIsa(std::string_view name) {
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kNeon}) {
    if (name == IsaName(isa)) return isa;
  }
  throw Error(ErrorKind::kUsage,
              "HEADLIGHT_ISA: must be baseline, avx2, avx512 or neon, found \"{}\"", name);
}

Isa SelectIsa() {
  const int64_t supported = hwy::SupportedTargets();
  Isa isa = BestIsa(supported);
  if (const char* wanted = std::getenv("HEADLIGHT_ISA"); wanted != nullptr && *wanted != '\0') {
    const Isa asked = ParseIsa(wanted);
    if (BestIsa(supported & TargetsUpTo(asked)) != asked) {
      throw Error(ErrorKind::kUsage, "HEADLIGHT_ISA: this CPU lacks {}; its best is {}",
                  IsaName(asked), IsaName(isa));
    }
    isa = asked;
  }
  hwy::DisableTargets(~TargetsUpTo(isa));
  return isa;
}

enum class Register { kA, kC, kD };

// A bit of CPUID leaf 7.
bool CpuidBit([[maybe_unused]] unsigned subleaf, [[maybe_unused]] Register in,
              [[maybe_unused]] int bit) {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, subleaf, &a, &b, &c, &d) == 0) return false;
  const unsigned value = in == Register::kA ? a : in == Register::kC ? c : d;
  return (value >> bit & 1) != 0;
#else
  return false;
#endif
}

// The system must allow a process the tiles' state (Linux: Documentation/arch/x86/xstate.rst).
bool SystemAllowsTiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

Bf16Unit SelectBf16Unit() {
  constexpr Bf16Unit kBestFirst[] = {Bf16Unit::kAmx, Bf16Unit::kAvx512Bf16, Bf16Unit::kNone};
  const char* wanted = std::getenv("HEADLIGHT_BF16");
  const bool asked = wanted != nullptr && *wanted != '\0';
  for (Bf16Unit unit : kBestFirst) {
    if (asked && std::string_view(wanted) != Bf16UnitName(unit)) continue;
    if (MachineHas(unit)) return unit;
    if (asked) {
      throw Error(ErrorKind::kUsage, "HEADLIGHT_BF16: this machine lacks {} under HEADLIGHT_ISA {}",
                  wanted, IsaName(SelectedIsa()));
    }
  }
  throw Error(ErrorKind::kUsage, "HEADLIGHT_BF16: must be none, avx512_bf16 or amx, found \"{}\"",
              wanted);
}

}  // namespace

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return "baseline";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kNeon:
      return "neon";
  }
  return "";
}

Isa SelectedIsa() {
  static const Isa isa = SelectIsa();
  return isa;
}

const char* Bf16UnitName(Bf16Unit unit) {
  switch (unit) {
    case Bf16Unit::kNone:
      return "none";
    case Bf16Unit::kAvx512Bf16:
      return "avx512_bf16";
    case Bf16Unit::kAmx:
      return "amx";
  }
  return "";
}

bool MachineHas(Bf16Unit unit) {
  if (unit == Bf16Unit::kNone) return true;
  if (SelectedIsa() != Isa::kAvx512 || !CpuidBit(1, Register::kA, 5)) return false;
  if (unit == Bf16Unit::kAvx512Bf16) return true;
  return CpuidBit(0, Register::kD, 22) && CpuidBit(0, Register::kD, 24) && SystemAllowsTiles();
}

Bf16Unit SelectedBf16Unit() {
  static const Bf16Unit unit = SelectBf16Unit();
  return unit;
}

bool CpuHasAvx512Vnni() { return CpuidBit(0, Register::kC, 11); }

std::string CpuModelName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace headlight
