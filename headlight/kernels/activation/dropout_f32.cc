#include <algorithm>
#include <cmath>

#include "headlight/base/cpu.h"
#include "headlight/base/random.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/activation/activation_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headlight/kernels/activation/dropout_f32.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After highway.h, which defines what it is compiled for.
#include "headlight/kernels/vector-inl.h"

namespace headlight::internal {
#ifndef HEADLIGHT_KERNELS_DROPOUT_ROW_
#define HEADLIGHT_KERNELS_DROPOUT_ROW_

// One row's worth of dropout.
struct DropoutRow {
  PhiloxKey key;
  PhiloxCounter counter;  // word 0 is free: it counts the features
  uint32_t kept;          // of 65536
  float scale;
};

#endif  // HEADLIGHT_KERNELS_DROPOUT_ROW_
}  // namespace headlight::internal

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Features go in groups of 128. Feature f takes, of the Philox block with counter
// 16 (f / 128) + f % 16, the half (f / 16) % 8 of its four words, low half first: 8 numbers a
// block, and for vectors of 4, 8 or 16 lanes nothing needs to be moved between lanes.
inline constexpr int64_t kGroup = 128;
inline constexpr int64_t kGroupBlocks = 16;

#if HWY_TARGET == HWY_SCALAR

void DropoutRowT(const internal::DropoutRow& row, const float* x, int64_t count, float* y) {
  for (int64_t f = 0; f < count; ++f) {
    PhiloxCounter counter = row.counter;
    counter[0] = static_cast<uint32_t>(f / kGroup * kGroupBlocks + f % kGroupBlocks);
    const PhiloxCounter words = Philox(row.key, counter);
    const int64_t half = f / 16 % 8;
    const uint32_t bits = words[static_cast<size_t>(half / 2)] >> (half % 2 * 16) & 0xFFFFu;
    y[f] = bits < row.kept ? x[f] * row.scale : 0.0f;
  }
}

#else

using WordTag = hn::ScalableTag<uint32_t>;
using WordVector = hn::Vec<WordTag>;

// Both halves of the 64-bit products of all lanes with a constant.
HWY_INLINE void MultiplyWide(WordTag d, WordVector a, WordVector factor, WordVector& low,
                             WordVector& high) {
  const hn::Repartition<uint64_t, WordTag> wide;
  const auto even = hn::MulEven(a, factor);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), factor);
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
}

// base/random.h's Philox4x32-10, a counter in each lane.
HWY_INLINE void PhiloxVector(WordTag d, const PhiloxKey& key, WordVector* c) {
  const WordVector factor0 = hn::Set(d, 0xD2511F53u), factor1 = hn::Set(d, 0xCD9E8D57u);
  uint32_t key0 = key[0], key1 = key[1];
  for (int round = 0; round < 10; ++round) {
    WordVector low0, high0, low1, high1;
    MultiplyWide(d, c[0], factor0, low0, high0);
    MultiplyWide(d, c[2], factor1, low1, high1);
    c[0] = hn::Xor(hn::Xor(high1, c[1]), hn::Set(d, key0));
    c[1] = low1;
    c[2] = hn::Xor(hn::Xor(high0, c[3]), hn::Set(d, key1));
    c[3] = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

void DropoutRowT(const internal::DropoutRow& row, const float* x, int64_t count, float* y) {
  const hn::ScalableTag<float> d;
  const WordTag dw;
  const hn::RebindToSigned<WordTag> di;
  const int64_t lanes = LanesOf(d);
  const auto scale = hn::Set(d, row.scale);
  const auto kept = hn::Set(di, static_cast<int32_t>(row.kept));
  for (int64_t group = 0; group * kGroup < count; ++group) {
    for (int64_t lane = 0; lane < kGroupBlocks; lane += lanes) {
      WordVector words[4] = {hn::Iota(dw, static_cast<uint32_t>(group * kGroupBlocks + lane)),
                             hn::Set(dw, row.counter[1]), hn::Set(dw, row.counter[2]),
                             hn::Set(dw, row.counter[3])};
      PhiloxVector(dw, row.key, words);
      for (int64_t half = 0; half < 8; ++half) {
        const int64_t at = group * kGroup + half * 16 + lane;
        if (at >= count) break;
        const WordVector word = words[half / 2];
        const auto bits = half % 2 ? hn::ShiftRight<16>(word) : hn::And(word, hn::Set(dw, 0xFFFFu));
        const auto keep = hn::RebindMask(d, hn::Lt(hn::BitCast(di, bits), kept));
        if (at + lanes <= count) {
          hn::StoreU(hn::IfThenElseZero(keep, hn::Mul(hn::LoadU(d, x + at), scale)), d, y + at);
        } else {
          const auto value = hn::Mul(LoadPart(d, x + at, count - at), scale);
          StorePart(d, hn::IfThenElseZero(keep, value), y + at, count - at);
        }
      }
    }
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {

HWY_EXPORT(DropoutRowT);

namespace internal {
namespace {

uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

}  // namespace

void DropoutF32(const Tensor& x, const DropoutOptions& options, Tensor& y) {
  SelectedIsa();
  const double kept = std::max(1.0, std::round((1 - options.rate) * 65536));
  const auto step = static_cast<uint64_t>(options.step);
  const auto layer = static_cast<uint64_t>(options.layer);
  const View<const float> from = x.view<float>();
  const View<float> to = y.view<float>();
  constexpr int64_t kGrain = 32;  // rows
  ParallelForRange(x.size(0), kGrain, [&](int64_t begin, int64_t end, int) {
    // The sequence that holds row `begin`: the last that starts at or before it.
    const auto after = std::upper_bound(options.offsets.begin(), options.offsets.end(), begin);
    auto s = static_cast<size_t>(after - options.offsets.begin()) - 1;
    for (int64_t row = begin; row < end; ++row) {
      while (row >= options.offsets[s + 1]) ++s;
      const auto id = static_cast<uint64_t>(options.sample_ids[s]);
      const PhiloxCounter key = Philox({Low(options.seed), High(options.seed)},
                                       {Low(layer), High(layer), High(step), High(id)});
      const auto position = static_cast<uint64_t>(row - options.offsets[s]);
      HWY_DYNAMIC_DISPATCH(DropoutRowT)
      ({{key[0], key[1]},
        {0, Low(position), Low(id), Low(step)},
        static_cast<uint32_t>(kept),
        static_cast<float>(65536 / kept)},
       from.row(row), x.size(1), to.row(row));
    }
  });
}

}  // namespace internal
}  // namespace headlight
#endif
