#include "headlight/kernels/bf16-target-inl.h"
// After that, which defines what they are compiled for.
#include "headlight/base/error.h"
#include "headlight/kernels/peak/peak_internal.h"

#if HWY_ARCH_X86
#include "headlight/kernels/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {

double AmxLoop(int64_t rounds) {
  const TileRegisters registers(Bf16Unit::kAmx);
  constexpr int64_t kTiles = 4;
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  return 2.0 * kPairTile * kPairTile * kPairDepth * kTiles * static_cast<double>(rounds);
}

double VectorLoop(int64_t rounds) {
  constexpr int kChains = 12;
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  const __m512bh one = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f80));
  for (int64_t round = 0; round < rounds; ++round) {
    HWY_UNROLL(12)
    for (__m512& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, one, one);
      asm volatile("" : "+v"(sum));  // each is done, and none is another's
    }
  }
  return 2.0 * kPairDepth * kChains * static_cast<double>(rounds);
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();
#endif  // HWY_ARCH_X86

namespace headlight::internal {

double PairProductLoop([[maybe_unused]] Bf16Unit unit, [[maybe_unused]] int64_t rounds) {
#if HWY_ARCH_X86
  // An AMX round takes 64 cycles, the other 6 to 24.
  if (unit == Bf16Unit::kAmx) return N_AVX3_BF16::AmxLoop(rounds / 4);
  if (unit == Bf16Unit::kAvx512Bf16) return N_AVX3_BF16::VectorLoop(rounds);
#endif
  throw Error(ErrorKind::kInternal, "peak: {} does not multiply bf16", Bf16UnitName(unit));
}

}  // namespace headlight::internal
