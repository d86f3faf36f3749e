// The same bits for any number of threads, any batch and any padding; and what is refused, how.
#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_compare_test-inl.h"

namespace headlight {
namespace {

using namespace attention_test;

Case SameBitsCase(const std::vector<Lengths>& lengths, double rate) {
  Options options = F32(lengths, 24);
  options.heads = 4;
  options.kv_heads = 2;
  Case made = MakeCase(options);
  made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  made.problem.dropout.rate = rate;
  return made;
}

TEST(AttentionSameBits, AnyNumberOfThreadsAndAnyRun) {
  const int threads = NumThreads();
  for (double rate : {0.0, 0.2}) {
    const Case made = SameBitsCase({{40, 40}, {1, 1}, {530, 530}, {65, 65}, {16, 16}}, rate);
    SetNumThreads(1);
    const Results first = RunFused(made);
    for (int run = 0; run < 10; ++run) {
      SetNumThreads(run % 3 + 1);
      const Results again = RunFused(made);
      EXPECT_TRUE(SameBits(first.outputs.out, again.outputs.out));
      EXPECT_TRUE(SameBits(first.outputs.lse, again.outputs.lse));
      EXPECT_TRUE(SameBits(first.gradients.query, again.gradients.query));
      EXPECT_TRUE(SameBits(first.gradients.key, again.gradients.key));
      EXPECT_TRUE(SameBits(first.gradients.value, again.gradients.value));
    }
  }
  SetNumThreads(threads);
}

TEST(AttentionSameBits, TableGradientsForAnyNumberOfThreads) {
  Options options = F32({{40, 40}, {1, 1}, {65, 65}, {16, 16}}, 24);
  options.heads = options.kv_heads = 2;
  options.relative_max = 20;
  const Case made = MakeCase(options);
  const int threads = NumThreads();
  SetNumThreads(1);
  const Results first = RunFused(made);
  for (int count : {2, 3}) {
    SetNumThreads(count);
    const Results again = RunFused(made);
    EXPECT_TRUE(SameBits(first.gradients.relative_keys, again.gradients.relative_keys));
    EXPECT_TRUE(SameBits(first.gradients.relative_values, again.gradients.relative_values));
  }
  SetNumThreads(threads);
}

TEST(AttentionSameBits, AnyBatchComposition) {
  for (double rate : {0.0, 0.2}) {
    const Case made =
        SameBitsCase({{40, 40}, {3, 70}, {1, 1}, {530, 530}, {65, 30}, {16, 16}}, rate);
    OnEveryIsa([&] {
      const Results together = RunFused(made);
      for (int64_t s = 0; s < made.problem.batch(); ++s) {
        const size_t at = static_cast<size_t>(s);
        const int64_t q0 = made.problem.query_offsets[at], q1 = made.problem.query_offsets[at + 1];
        const int64_t k0 = made.problem.key_offsets[at], k1 = made.problem.key_offsets[at + 1];
        const Results alone = RunFused(Alone(made, s));
        EXPECT_TRUE(SameBits(together.outputs.out.Slice(0, q0, q1), alone.outputs.out));
        EXPECT_TRUE(SameBits(together.outputs.lse.Slice(1, q0, q1), alone.outputs.lse));
        EXPECT_TRUE(SameBits(together.gradients.query.Slice(0, q0, q1), alone.gradients.query));
        EXPECT_TRUE(SameBits(together.gradients.key.Slice(0, k0, k1), alone.gradients.key));
        EXPECT_TRUE(SameBits(together.gradients.value.Slice(0, k0, k1), alone.gradients.value));
      }
    });
  }
}

// Padding a sequence and hiding the padding by key lengths changes no bit of its rows.
TEST(AttentionSameBits, PaddingBehindKeyLengths) {
  const Case made = MakeCase(F32({{37, 90}}, 24));
  Case shorter = made;
  shorter.problem.key_offsets = {0, 61};
  shorter.inputs.key = made.inputs.key.Slice(0, 0, 61);
  shorter.inputs.value = made.inputs.value.Slice(0, 0, 61);
  Case padded = made;
  padded.problem.mask.key_lengths = {61};
  OnEveryIsa([&] {
    const Results a = RunFused(shorter), b = RunFused(padded);
    EXPECT_TRUE(SameBits(a.outputs.out, b.outputs.out));
    EXPECT_TRUE(SameBits(a.gradients.query, b.gradients.query));
    EXPECT_TRUE(SameBits(a.gradients.key, b.gradients.key.Slice(0, 0, 61)));
    EXPECT_EQ(LargestMagnitude(Values(b.gradients.key.Slice(0, 61, 90))), 0);
  });
}

TEST(AttentionErrors, BadProblemsAreRefusedWithTheirRule) {
  const Case good = MakeCase(F32({{5, 5}}));
  const auto expect = [&](const std::function<void(Case&)>& spoil, ErrorKind kind,
                          const std::string& part) { ExpectRefused(good, spoil, kind, part); };
  using K = ErrorKind;
  expect([](Case& c) { c.problem.query_offsets = {}; }, K::kShape, "query_offsets");
  expect([](Case& c) { c.problem.key_offsets = {0, 5, 4}; }, K::kShape, "key_offsets");
  expect(
      [](Case& c) {
        c.problem.heads = 3;
        c.problem.kv_heads = 2;
      },
      K::kShape, "divide");
  expect([](Case& c) { c.problem.head_dim = 4; }, K::kShape, "query must be f32 [5, 1, 4]");
  expect([](Case& c) { c.problem.dtype = DType::kF64; }, K::kShape, "query must be f64");
  expect([](Case& c) { c.problem.scale = kNaN; }, K::kUsage, "scale");
  expect([](Case& c) { c.problem.dropout.rate = 1; }, K::kUsage, "rate");
  expect([](Case& c) { c.problem.dropout = {0.5, 1, 0, 0, {}}; }, K::kShape, "sample ids");
  expect([](Case& c) { c.problem.mask.key_lengths = {6}; }, K::kShape, "key length");
  expect([](Case& c) { c.problem.mask.window = Mask::Window{-1, 0}; }, K::kUsage, "window");
}

TEST(AttentionPlans, SayTheKernelAndWhyNotABetterOne) {
  Case made = MakeCase(F32({{5, 5}}));
  EXPECT_EQ(PlanAttention(made.problem).kernel, std::string("fused f32 ") + IsaName(SelectedIsa()));
  made.problem.head_dim = 300;
  const AttentionPlan plan = PlanAttention(made.problem);
  EXPECT_EQ(plan.kernel, "reference f32");
  EXPECT_NE(plan.ToString().find("head_dim is 300"), std::string::npos);
}

}  // namespace
}  // namespace headlight
