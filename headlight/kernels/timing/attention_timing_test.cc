#include "headlight/kernels/timing/attention_timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "headlight/base/error.h"
#include "headlight/base/memory.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/attention/attention_test-inl.h"

namespace headlight {
namespace {

using attention_test::SameBits;
using attention_test::Values;

AttentionShape Parse(const char* text) { return ParseAttentionShape(text); }

AttentionTimingOptions Quick() {
  AttentionTimingOptions options;
  options.threads = {1};
  options.repeats = 3;
  options.seconds = 0;
  options.peak_seconds = 0;
  return options;
}

TEST(TimedPass, RunsTheForwardPassOfItsInputs) {
  const AttentionShape shape = Parse("b2 h4 kv2 q3 n5 d8 dv6 causal");
  AttentionInputs inputs = {Tensor::Zeros({6, 4, 8}, DType::kF32, MemoryTag::kOther),
                            Tensor::Zeros({10, 2, 8}, DType::kF32, MemoryTag::kOther),
                            Tensor::Zeros({10, 2, 6}, DType::kF32, MemoryTag::kOther)};
  attention_test::FillNormal(inputs.query, 1, 1, 1);
  attention_test::FillNormal(inputs.key, 1, 2, 1);
  attention_test::FillNormal(inputs.value, 1, 3, 1);
  TimedPass pass(shape, inputs, {});
  pass.Run();
  AttentionOutputs expected;
  AttentionForward(MakeAttentionProblem(shape), inputs, expected);
  EXPECT_TRUE(SameBits(pass.outputs().out, expected.out));
  EXPECT_EQ(pass.outputs().out.shape().ToString(), (Shape{6, 4, 6}).ToString());
}

TEST(TimedPass, TensorsMayLieHeadByHead) {
  for (const std::string words : {"b2 h4 kv2 n5 d8 dv6 causal", "b2 h3 n40 d8 backward"}) {
    TimedPass tokens(Parse(words.c_str())), heads(Parse((words + " bhnd").c_str()));
    tokens.Run();
    heads.Run();
    const auto expect_same = [](const Tensor& rows, const Tensor& padded) {
      if (rows.empty()) return;
      const int64_t len = rows.size(0) / 2;
      EXPECT_EQ(padded.shape().ToString(), (Shape{2, len, rows.size(1), rows.size(2)}).ToString());
      EXPECT_EQ(padded.stride(2), len * rows.size(2));
      EXPECT_TRUE(SameBits(padded.Clone(MemoryTag::kOther).Reshape(rows.shape()), rows));
    };
    expect_same(tokens.outputs().out, heads.outputs().out);
    expect_same(tokens.gradients().query, heads.gradients().query);
    expect_same(tokens.gradients().key, heads.gradients().key);
    expect_same(tokens.gradients().value, heads.gradients().value);
  }
}

TEST(TimedPass, RunsTheBackwardPass) {
  TimedPass pass(Parse("b2 h2 n5 d8 backward relative"));
  pass.Run();
  for (const Tensor* gradient : {&pass.gradients().query, &pass.gradients().key,
                                 &pass.gradients().value, &pass.gradients().relative_keys}) {
    const std::vector<double> values = Values(*gradient);
    EXPECT_GT(attention_test::LargestMagnitude(values), 1e-3);
    for (const double value : values) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(TimedPass, RunsTheImplementationThatIsAskedFor) {
  constexpr int64_t kMatrices = 2 * 3 * 40 * 40 * 4;  // bytes of all weights
  for (const std::string pass : {"", " backward"}) {
    TimedPass fused(Parse(("b2 h3 n40 d8" + pass).c_str()));
    fused.Run();
    const auto result = [](const TimedPass& of) {
      return of.gradients().key.empty() ? of.outputs().out : of.gradients().key;
    };
    for (const std::string by : {" by=naive", " by=per-head"}) {
      const int64_t before = MemoryOf(MemoryTag::kActivations).now;
      TimedPass other(Parse(("b2 h3 n40 d8" + pass + by).c_str()));
      other.Run();
      EXPECT_GE(MemoryOf(MemoryTag::kActivations).now - before, kMatrices) << by << pass;
      for (int64_t i = 0; i < result(fused).elements(); ++i) {
        ASSERT_NEAR(result(other).data<float>()[i], result(fused).data<float>()[i], 1e-4);
      }
    }
  }
}

TEST(TimedPass, MakesWhatIsAskedFor) {
  TimedPass pass(Parse("b2 h3 n5 d8 statistics weights=2"));
  pass.Run();
  ASSERT_EQ(pass.outputs().weights.size(), 4u);
  EXPECT_EQ(pass.outputs().weights[3].sequence, 1);
  EXPECT_EQ(pass.outputs().weights[3].head, 1);
  EXPECT_EQ(pass.outputs().weights[3].weights.elements(), 25);
  ASSERT_TRUE(pass.outputs().statistics.has_value());
  EXPECT_EQ(pass.outputs().statistics->entropy.elements(), 3 * 10);
}

TEST(TimedPass, RefusesInputsOfAnotherShape) {
  AttentionInputs inputs = {Tensor::Zeros({6, 1, 8}, DType::kF32, MemoryTag::kOther),
                            Tensor::Zeros({5, 1, 8}, DType::kF32, MemoryTag::kOther),
                            Tensor::Zeros({5, 1, 8}, DType::kF32, MemoryTag::kOther)};
  EXPECT_THROW(TimedPass(Parse("n5 d8"), inputs, {}).Run(), Error);
}

TEST(AttentionTiming, TakesTurnsAndCountsEveryRepetition) {
  const std::vector<AttentionShape> shapes = {Parse("b2 h2 n9 d8"), Parse("n7 d16 backward"),
                                              Parse("n4 d8 f64"), Parse("n4 d8 stored=bf16")};
  AttentionTimingOptions options = Quick();
  options.threads = {1, 2};
  int64_t calls = 0;
  options.progress = [&](int64_t done, int64_t total) {
    EXPECT_EQ(done, calls++);
    EXPECT_EQ(total, 4 * 2 * 3);
  };
  const int before = NumThreads();
  const std::vector<AttentionTiming> timings = TimeAttention(shapes, options);
  EXPECT_EQ(NumThreads(), before);
  EXPECT_EQ(calls, 4 * 2 * 3);
  ASSERT_EQ(timings.size(), 8u);
  for (size_t i = 0; i < timings.size(); ++i) {
    EXPECT_EQ(timings[i].shape, shapes[i / 2]);
    EXPECT_EQ(timings[i].threads, i % 2 == 0 ? 1 : 2);
    EXPECT_EQ(timings[i].seconds.size(), 3u);
    EXPECT_EQ(timings[i].peaks.size(), 3u);
    EXPECT_EQ(timings[i].flops, AttentionFlops(shapes[i / 2]));
    EXPECT_GT(timings[i].MedianSeconds(), 0);
    EXPECT_GT(timings[i].MedianPeak(), 1e7);
  }
}

TEST(AttentionTiming, SharesAreOfTheirOwnPeaks) {
  AttentionTiming timing;
  timing.flops = 12;
  timing.seconds = {1, 2, 4};
  timing.peaks = {24, 24, 6};
  EXPECT_EQ(timing.MedianSeconds(), 2);
  EXPECT_EQ(timing.MedianPeak(), 24);
  EXPECT_EQ(timing.MedianShareOfPeak(), 0.5);  // of 1/2, 1/4 and 1/2
}

TEST(AttentionTiming, StopsWhereTheProgressThrows) {
  AttentionTimingOptions options = Quick();
  options.progress = [](int64_t done, int64_t) {
    if (done == 1) throw Error(ErrorKind::kInterrupted, "stop");
  };
  const int before = NumThreads();
  EXPECT_THROW(TimeAttention({Parse("n4 d8")}, options), Error);
  EXPECT_EQ(NumThreads(), before);
}

TEST(AttentionTiming, RefusesNoRepetitionsAndNoThreads) {
  AttentionTimingOptions options = Quick();
  options.repeats = 0;
  EXPECT_THROW(TimeAttention({Parse("n4 d8")}, options), Error);
  options = Quick();
  options.threads = {};
  EXPECT_THROW(TimeAttention({Parse("n4 d8")}, options), Error);
}

TEST(Median, IsTheMiddleOrTheMeanOfTheTwo) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_THROW(Median({}), Error);
}

TEST(CallsFor, IsAtLeastOne) {
  int calls = 0;
  EXPECT_EQ(CallsFor(0, [&] { ++calls; }), 1);
  EXPECT_EQ(calls, 2);
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  EXPECT_LE(CallsFor(0.01, sleep), 5);    // of 2 ms or more each
  EXPECT_GE(CallsFor(1e6, sleep), 1000);  // of less than 1000 s each
}

}  // namespace
}  // namespace headlight
