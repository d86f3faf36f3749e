#include "headlight/kernels/embedding/embedding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "headlight/base/error.h"
#include "headlight/kernels/embedding/embedding_reference.h"
#include "headlight/kernels/test_tensors.h"

namespace headlight {
namespace {

using namespace testing_tensors;

Tensor RandomIds(int64_t count, uint64_t bound) {
  Tensor ids = Tensor::Zeros({count}, DType::kI32, MemoryTag::kOther);
  RandomStream random(5, 6);
  for (int64_t t = 0; t < count; ++t) {
    // Half of the tokens share one id, as "the" does.
    ids.data<int32_t>()[t] = t % 2 ? 3 : static_cast<int32_t>(random.Below(bound));
  }
  return ids;
}

const std::vector<int64_t> kOffsets = {0, 3, 3, 100, 101, 203};

TEST(Embedding, MatchesTheReference) {
  for (int64_t features : {1, 7, 16, 33, 256}) {
    for (bool positions : {false, true}) {
      const Tensor ids = RandomIds(203, 50);
      const Tensor table = RandomMatrix(50, features, 1, 3);
      const Tensor places = RandomMatrix(110, features, 2, 3);
      const Tensor dy = RandomMatrix(203, features, 3, 3);
      const Tensor wide_table = Wide(table), wide_places = Wide(places);
      Tensor y = RandomMatrix(203, features, 4, 3), wanted = Wide(y);
      const EmbeddingInput input = {ids, table, 16, positions ? &places : nullptr, kOffsets};
      const EmbeddingInput wide = {ids, wide_table, 16, positions ? &wide_places : nullptr,
                                   kOffsets};
      EmbeddingForward(input, y);
      reference::EmbeddingForward(wide, wanted);
      Tensor magnitude = Wide(wanted);
      for (int64_t i = 0; i < magnitude.elements(); ++i) {
        magnitude.data<double>()[i] = std::fabs(magnitude.data<double>()[i]) + 16;
      }
      ExpectWithin(y, wanted, magnitude, 1);
      Tensor dtable = RandomMatrix(50, features, 5, 3), dplaces = RandomMatrix(110, features, 6, 3);
      Tensor wanted_dtable = Wide(dtable), wanted_dplaces = Wide(dplaces);
      Tensor size_dtable = Magnitude(dtable), size_dplaces = Magnitude(dplaces);
      EmbeddingBackward(input, dy, {dtable, positions ? &dplaces : nullptr});
      reference::EmbeddingBackward(wide, Wide(dy),
                                   {wanted_dtable, positions ? &wanted_dplaces : nullptr});
      reference::EmbeddingBackward(wide, Magnitude(dy),
                                   {size_dtable, positions ? &size_dplaces : nullptr});
      // A hundred additions to one row: errors of random sign.
      ExpectWithin(dtable, wanted_dtable, size_dtable, 8);
      ExpectWithin(dplaces, wanted_dplaces, size_dplaces, 8);
    }
  }
}

TEST(Embedding, GradientsAgreeWithCentralDifferences) {
  const Tensor ids = RandomIds(6, 5);
  const std::vector<int64_t> offsets = {0, 4, 6};
  Tensor table = RandomMatrix(5, 3, 1, 0, DType::kF64);
  Tensor places = RandomMatrix(4, 3, 2, 0, DType::kF64);
  const Tensor dy = RandomMatrix(6, 3, 3, 0, DType::kF64);
  Tensor y = RandomMatrix(6, 3, 4, 0, DType::kF64);
  const EmbeddingInput input = {ids, table, 2, &places, offsets};
  Tensor dtable = Tensor::Zeros({5, 3}, DType::kF64, MemoryTag::kOther);
  Tensor dplaces = Tensor::Zeros({4, 3}, DType::kF64, MemoryTag::kOther);
  EmbeddingBackward(input, dy, {dtable, &dplaces});
  const auto loss = [&] {
    EmbeddingForward(input, y);
    return Dot(y, dy);
  };
  ExpectGradient(table, dtable, loss);
  ExpectGradient(places, dplaces, loss);
}

TEST(Embedding, SameBitsForAnyThreads) {
  const Tensor ids = RandomIds(1000, 300), dy = RandomMatrix(1000, 20, 1);
  const Tensor table = RandomMatrix(300, 20, 2);
  ExpectSameForAnyThreads([&] {
    Tensor dtable = Tensor::Zeros({300, 20}, DType::kF32, MemoryTag::kOther);
    EmbeddingBackward({ids, table, 1, nullptr, {}}, dy, {dtable, nullptr});
    return dtable;
  });
}

TEST(Embedding, ListsAndClearsTouchedRows) {
  const Tensor ids = RandomIds(20, 300), table = RandomMatrix(300, 4, 2);
  Tensor dtable = Tensor::Zeros({300, 4}, DType::kF32, MemoryTag::kOther);
  EmbeddingBackward({ids, table, 1, nullptr, {}}, RandomMatrix(20, 4, 1), {dtable, nullptr});
  const std::vector<int32_t> rows = TouchedRows(ids);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  ZeroRows(rows, dtable);
  for (int64_t i = 0; i < dtable.elements(); ++i) EXPECT_EQ(dtable.data<float>()[i], 0);
  const std::vector<int32_t> outside = {300};
  EXPECT_THROW(ZeroRows(outside, dtable), Error);
}

TEST(SinusoidalPositions, AreThoseOfThePaper) {
  const Tensor table = SinusoidalPositions(50, 6, DType::kF64, MemoryTag::kOther);
  EXPECT_EQ(table.view<double>()(0, 0), 0);
  EXPECT_EQ(table.view<double>()(0, 1), 1);
  EXPECT_DOUBLE_EQ(table.view<double>()(7, 0), std::sin(7.0));
  EXPECT_NEAR(table.view<double>()(7, 2), std::sin(7 / std::pow(10000, 2.0 / 6)), 1e-12);
  EXPECT_NEAR(table.view<double>()(49, 5), std::cos(49 / std::pow(10000, 4.0 / 6)), 1e-12);
}

TEST(Embedding, RefusesWhatDoesNotFit) {
  Tensor ids = RandomIds(203, 50), y = RandomMatrix(203, 4, 1);
  const Tensor table = RandomMatrix(50, 4, 1), places = RandomMatrix(101, 4, 2);
  EXPECT_THROW(EmbeddingForward({ids, table, 1, &places, kOffsets}, y), Error);  // one too long
  EXPECT_THROW(EmbeddingForward({ids, table, 1, &places, {}}, y), Error);
  ids.data<int32_t>()[5] = 50;
  EXPECT_THROW(EmbeddingForward({ids, table, 1, nullptr, {}}, y), Error);
  ids.data<int32_t>()[5] = -1;
  EXPECT_THROW(EmbeddingForward({ids, table, 1, nullptr, {}}, y), Error);
}

}  // namespace
}  // namespace headlight
