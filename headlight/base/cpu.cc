#include "headlight/base/cpu.h"

#include <cstdlib>
#include <fstream>
#include <string_view>

#include "headlight/base/error.h"
#include "hwy/targets.h"

#if defined(__x86_64__)
#include <cpuid.h>
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

#if defined(__x86_64__)
bool CpuHasAvx512Bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 5 & 1) != 0;
}

bool CpuHasAvx512Vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 11 & 1) != 0;
}
#else
bool CpuHasAvx512Bf16() { return false; }
bool CpuHasAvx512Vnni() { return false; }
#endif

std::string CpuModelName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace headlight
