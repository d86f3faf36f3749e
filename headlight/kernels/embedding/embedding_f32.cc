#include <algorithm>
#include <vector>

#include "headlight/base/cpu.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/embedding/embedding_internal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headlight/kernels/embedding/embedding_f32.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After highway.h, which defines what it is compiled for.
#include "headlight/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace HWY_NAMESPACE {

// y = scale a + b; b may be null.
void ScaleRowT(float scale, const float* a, const float* b, int64_t count, float* y) {
  const hn::ScalableTag<float> d;
  const auto s = hn::Set(d, scale);
  if (b) {
    MapArrays(d, a, b, count, y, [s](auto va, auto vb) HWY_ATTR { return hn::MulAdd(s, va, vb); });
  } else {
    MapArray(d, a, count, y, [s](auto va) HWY_ATTR { return hn::Mul(s, va); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {

HWY_EXPORT(ScaleRowT);

namespace internal {
namespace {

// Tokens in order of (id, token), and where each run of one id begins (and the end).
struct SortedTokens {
  std::vector<uint64_t> keys;  // id << 32 | token
  std::vector<size_t> runs;

  int32_t id(size_t i) const { return static_cast<int32_t>(keys[i] >> 32); }
  int64_t token(size_t i) const { return static_cast<int64_t>(keys[i] & 0xFFFFFFFFu); }
};

SortedTokens SortTokens(const Tensor& ids) {
  SortedTokens sorted;
  const int32_t* from = ids.data<int32_t>();
  sorted.keys.resize(static_cast<size_t>(ids.size(0)));
  for (size_t t = 0; t < sorted.keys.size(); ++t) {
    sorted.keys[t] = static_cast<uint64_t>(from[t]) << 32 | t;
  }
  std::sort(sorted.keys.begin(), sorted.keys.end());
  for (size_t i = 0; i < sorted.keys.size(); ++i) {
    if (i == 0 || sorted.id(i) != sorted.id(i - 1)) sorted.runs.push_back(i);
  }
  sorted.runs.push_back(sorted.keys.size());
  return sorted;
}

}  // namespace

void EmbeddingForwardF32(const EmbeddingInput& input, Tensor& y) {
  SelectedIsa();
  const View<const float> table = input.table.view<float>();
  const View<float> to = y.view<float>();
  const int32_t* ids = input.ids.data<int32_t>();
  const auto scale = static_cast<float>(input.scale);
  constexpr int64_t kGrain = 64;  // tokens
  ParallelForRange(input.ids.size(0), kGrain, [&](int64_t begin, int64_t end, int) {
    size_t s = 0;
    if (input.positions) {
      // The sequence that holds token `begin`: the last that starts at or before it.
      const auto after = std::upper_bound(input.offsets.begin(), input.offsets.end(), begin);
      s = static_cast<size_t>(after - input.offsets.begin()) - 1;
    }
    for (int64_t token = begin; token < end; ++token) {
      const float* position = nullptr;
      if (input.positions) {
        while (token >= input.offsets[s + 1]) ++s;
        position = input.positions->view<float>().row(token - input.offsets[s]);
      }
      HWY_DYNAMIC_DISPATCH(ScaleRowT)
      (scale, table.row(ids[token]), position, to.size(1), to.row(token));
    }
  });
}

// Each distinct id, and each position, is one owner's: its tokens are added in ascending order.
void EmbeddingBackwardF32(const EmbeddingInput& input, const Tensor& dy,
                          const EmbeddingGradient& gradient) {
  SelectedIsa();
  const View<const float> from = dy.view<float>();
  const View<float> dtable = gradient.dtable.view<float>();
  const auto scale = static_cast<float>(input.scale);
  const int64_t features = dy.size(1);
  const SortedTokens sorted = SortTokens(input.ids);
  constexpr int64_t kIdsPerTask = 64;
  ParallelForRange(static_cast<int64_t>(sorted.runs.size()) - 1, kIdsPerTask,
                   [&](int64_t begin, int64_t end, int) {
                     const size_t last = sorted.runs[static_cast<size_t>(end)];
                     for (size_t i = sorted.runs[static_cast<size_t>(begin)]; i < last; ++i) {
                       float* row = dtable.row(sorted.id(i));
                       HWY_DYNAMIC_DISPATCH(ScaleRowT)
                       (scale, from.row(sorted.token(i)), row, features, row);
                     }
                   });
  if (!gradient.dpositions) return;
  const View<float> dpositions = gradient.dpositions->view<float>();
  constexpr int64_t kPositionsPerTask = 16;
  ParallelForRange(dpositions.size(0), kPositionsPerTask, [&](int64_t begin, int64_t end, int) {
    for (int64_t position = begin; position < end; ++position) {
      float* row = dpositions.row(position);
      for (size_t s = 0; s + 1 < input.offsets.size(); ++s) {
        const int64_t token = input.offsets[s] + position;
        if (token >= input.offsets[s + 1]) continue;
        HWY_DYNAMIC_DISPATCH(ScaleRowT)(1, from.row(token), row, features, row);
      }
    }
  });
}

}  // namespace internal
}  // namespace headlight
#endif
