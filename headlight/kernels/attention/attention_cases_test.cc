// Behaviours that users of other libraries were bitten by, each with its kind: masks of nothing,
// alignment, windows, hidden NaN, dropout, ragged edges, probes.
#include <gtest/gtest.h>

#include <set>

#include "headlight/base/error.h"
#include "headlight/kernels/attention/attention_compare_test-inl.h"

namespace headlight {
namespace {

using namespace attention_test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Zero scores (every kept key weighs the same), and value j in each column of key j.
Case ZeroScores(Lengths lengths) {
  Case made = MakeCase(F32({lengths}));
  made.inputs.query.FillZero();
  const View<float> value = made.inputs.value.view<float>();
  for (int64_t j = 0; j < value.size(0); ++j) {
    for (int64_t c = 0; c < value.size(2); ++c) value(j, 0, c) = static_cast<float>(j);
  }
  return made;
}

// Fused on every ISA, and the reference.
void ExpectRows(const Case& made, const std::vector<float>& rows) {
  const auto check = [&](const AttentionOutputs& outputs) {
    const View<const float> out = outputs.out.view<float>();
    for (int64_t i = 0; i < out.size(0); ++i) {
      for (int64_t c = 0; c < out.size(2); ++c) {
        // Rounding of one division and of sums of small integers.
        EXPECT_NEAR(out(i, 0, c), rows[static_cast<size_t>(i)], 1e-6f * (1 + rows.back())) << i;
      }
    }
  };
  check(RunReference(made).outputs);
  OnEveryIsa([&] { check(RunFused(made).outputs); });
}

TEST(AttentionCases, CausalAlignment) {
  Case made = ZeroScores({2, 4});
  made.problem.mask.causal = Mask::Causal::kAlignedToStart;
  ExpectRows(made, {0, 0.5f});
  made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  ExpectRows(made, {1, 1.5f});
  Case longer = ZeroScores({4, 2});
  longer.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  ExpectRows(longer, {0, 0, 0, 0.5f});
  const Results results = RunFused(longer);
  EXPECT_EQ(results.outputs.lse.view<float>()(0, 0), -kInfinity);
  EXPECT_EQ(results.outputs.lse.view<float>()(0, 1), -kInfinity);
}

TEST(AttentionCases, WindowCountsItsOwnKey) {
  Case made = ZeroScores({6, 6});
  made.problem.mask.window = Mask::Window{2, 0};
  ExpectRows(made, {0, 0.5f, 1, 2, 3, 4});
  made.problem.mask.window = Mask::Window{1, 1};
  ExpectRows(made, {0.5f, 1, 2, 3, 4, 4.5f});
  // Wider than anything, up to the largest number there is.
  made.problem.mask.window = Mask::Window{INT64_MAX, INT64_MAX};
  ExpectRows(made, {2.5f, 2.5f, 2.5f, 2.5f, 2.5f, 2.5f});
}

TEST(AttentionCases, LateRowsWhoseFirstKeyBlocksAreMasked) {
  Case window = MakeCase(F32({{640, 640}}, 4));
  window.problem.mask.window = Mask::Window{9, 0};
  const Results want = RunReference(window);
  Case keep = window;
  keep.problem.mask.window.reset();
  AddKeep(keep, 0, 1);
  for (int64_t i = 0; i < 640; ++i) {
    for (int64_t j = std::max<int64_t>(0, i - 9); j <= i; ++j) {
      keep.keep[static_cast<size_t>(i * 640 + j)] = 1;
    }
  }
  OnEveryIsa([&] {
    const Results by_window = RunFused(window), by_keep = RunFused(keep);
    EXPECT_EQ(CompareWithReference(window, by_window, want), "");
    // The same mask said in two ways gives the same bits.
    EXPECT_TRUE(SameBits(by_window.outputs.out, by_keep.outputs.out));
    EXPECT_TRUE(SameBits(by_window.gradients.key, by_keep.gradients.key));
  });
}

// A row with nothing to attend to, by each kind of mask: out 0, lse -inf, gradients 0.
TEST(AttentionCases, NothingToAttendTo) {
  for (int64_t n : {1, 7, 40}) {
    std::vector<Case> cases(3, MakeCase(F32({{n, n}, {n, n}})));
    AddKeep(cases[0], 1, 1);
    std::fill_n(cases[0].keep.begin(), n * n, uint8_t{0});
    cases[0].problem.mask.keep.data = cases[0].keep.data();
    cases[1].problem.mask.key_lengths = {0, n};
    cases[2].problem.mask.causal = Mask::Causal::kAlignedToEnd;
    cases[2].problem.key_offsets = {0, 0, n};
    for (Tensor* tensor : {&cases[2].inputs.key, &cases[2].inputs.value}) {
      *tensor = tensor->Slice(0, 0, n);
    }
    for (const Case& made : cases) {
      const Results want = RunReference(made);
      OnEveryIsa([&] {
        const Results got = RunFused(made);
        EXPECT_EQ(CompareWithReference(made, got, want), "");
        for (int64_t i = 0; i < n; ++i) {
          EXPECT_EQ(got.outputs.lse.view<float>()(0, i), -kInfinity);
          for (int64_t c = 0; c < 8; ++c) {
            EXPECT_EQ(got.outputs.out.view<float>()(i, 0, c), 0);
            EXPECT_EQ(got.gradients.query.view<float>()(i, 0, c), 0);
          }
        }
      });
    }
  }
}

TEST(AttentionCases, MaskedNaNAndInfinityNeverLeak) {
  for (float poison : {kNaN, kInfinity, -kInfinity}) {
    Case made = ZeroScores({2, 2});
    AddKeep(made, 1, 1);
    made.keep = {1, 0, 1, 0};
    made.problem.mask.keep.data = made.keep.data();
    for (int64_t c = 0; c < 8; ++c) {
      made.inputs.key.view<float>()(1, 0, c) = poison;
      made.inputs.value.view<float>()(1, 0, c) = poison;
    }
    ExpectRows(made, {0, 0});
  }
}

// Poison in keys, values, queries and output gradients of a random mask: what it may not reach has
// the same bits as without it, forward and backward.
TEST(AttentionCases, PoisonReachesOnlyWhoKeepsIt) {
  const int64_t n = 45, bad = 20;
  for (float poison : {kNaN, kInfinity}) {
    for (double rate : {0.0, 0.3}) {
      Case clean = MakeCase(F32({{n, n}}, 12));
      AddKeep(clean, 0.5, 4);
      clean.problem.dropout.rate = rate;
      Case dirty = clean;
      dirty.problem.mask.keep.data = dirty.keep.data();
      for (Tensor* tensor :
           {&dirty.inputs.query, &dirty.inputs.key, &dirty.inputs.value, &dirty.out_gradient}) {
        *tensor = tensor->Clone(MemoryTag::kOther);
        tensor->view<float>()(bad, 0, 3) = poison;
      }
      OnEveryIsa([&] {
        const Results a = RunFused(clean), b = RunFused(dirty);
        const View<const float> x = a.outputs.out.view<float>(), y = b.outputs.out.view<float>();
        int reached = 0;
        std::vector<bool> row_reached(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i) {
          const bool keeps = clean.keep[static_cast<size_t>(i * n + bad)] != 0 || i == bad;
          row_reached[static_cast<size_t>(i)] = keeps;
          for (int64_t c = 0; c < 12; ++c) {
            if (!keeps) {
              EXPECT_EQ(x(i, 0, c), y(i, 0, c)) << i;
            }
            reached += std::isfinite(y(i, 0, c)) ? 0 : 1;
          }
        }
        EXPECT_GT(reached, 0);
        for (int64_t j = 0; j < n; ++j) {
          bool touched = j == bad;
          for (int64_t i = 0; i < n; ++i) {
            touched |= row_reached[static_cast<size_t>(i)] &&
                       clean.keep[static_cast<size_t>(i * n + j)] != 0;
          }
          for (int64_t c = 0; c < 12 && !touched; ++c) {
            EXPECT_EQ(a.gradients.key.view<float>()(j, 0, c),
                      b.gradients.key.view<float>()(j, 0, c));
            EXPECT_EQ(a.gradients.value.view<float>()(j, 0, c),
                      b.gradients.value.view<float>()(j, 0, c));
          }
        }
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t c = 0; c < 12 && !row_reached[static_cast<size_t>(i)]; ++c) {
            EXPECT_EQ(a.gradients.query.view<float>()(i, 0, c),
                      b.gradients.query.view<float>()(i, 0, c));
          }
        }
      });
    }
  }
}

// Keys past key_lengths, and the rows of other sequences around one, hold NaN.
TEST(AttentionCases, PoisonedSurroundings) {
  Case made = MakeCase(F32({{9, 30}, {17, 17}, {5, 5}}, 12));
  made.problem.mask.key_lengths = {21, 17, 5};
  const Results clean = RunFused(made);
  const auto poison = [](Tensor& tensor, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      for (int64_t c = 0; c < tensor.size(2); ++c) tensor.view<float>()(i, 0, c) = kNaN;
    }
  };
  poison(made.inputs.key, 21, 30);
  poison(made.inputs.value, 21, 30);
  poison(made.inputs.query, 26, 31);  // all of the third sequence
  poison(made.inputs.key, 47, 52);
  poison(made.inputs.value, 47, 52);
  OnEveryIsa([&] {
    const Results got = RunFused(made);
    for (int64_t i = 0; i < 26; ++i) {
      for (int64_t c = 0; c < 12; ++c) {
        ASSERT_TRUE(std::isfinite(got.outputs.out.view<float>()(i, 0, c)));
        ASSERT_TRUE(std::isfinite(got.gradients.query.view<float>()(i, 0, c)));
      }
    }
    for (int64_t j = 0; j < 47; ++j) {
      ASSERT_TRUE(std::isfinite(got.gradients.key.view<float>()(j, 0, 0)));
      ASSERT_TRUE(std::isfinite(got.gradients.value.view<float>()(j, 0, 0)));
    }
    EXPECT_TRUE(std::isnan(got.outputs.out.view<float>()(30, 0, 0)));
  });
  const Results again = RunFused(made);
  EXPECT_TRUE(SameBits(clean.outputs.out.Slice(0, 0, 26), again.outputs.out.Slice(0, 0, 26)));
  EXPECT_TRUE(SameBits(clean.gradients.key.Slice(0, 0, 47), again.gradients.key.Slice(0, 0, 47)));
}

TEST(AttentionCases, UnmaskedNonFiniteScoresComeOutAsNaN) {
  for (float poison : {kNaN, kInfinity}) {
    Case made = MakeCase(F32({{20, 20}}, 8));
    made.inputs.query.view<float>()(4, 0, 0) = poison;
    made.inputs.key.view<float>()(7, 0, 0) = 1;
    OnEveryIsa([&] {
      const Results got = RunFused(made);
      EXPECT_TRUE(std::isnan(got.outputs.out.view<float>()(4, 0, 0)));
      EXPECT_TRUE(std::isfinite(got.outputs.out.view<float>()(3, 0, 0)));
    });
    const auto found = FindNonFiniteScore(made.problem, made.inputs);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->query, 4);
    EXPECT_EQ(found->key, 0);
  }
  const Case finite = MakeCase(F32({{9, 9}}, 8));
  EXPECT_FALSE(FindNonFiniteScore(finite.problem, finite.inputs).has_value());
}

// A left-padded row: causal, key 0 hidden, scores about -20.
TEST(AttentionCases, PaddedKeyUnderLowScores) {
  Case made = MakeCase(F32({{2, 2}}));
  for (int64_t c = 0; c < 8; ++c) {
    made.inputs.query.view<float>()(1, 0, c) = -2.66f;
    made.inputs.key.view<float>()(1, 0, c) = 2.66f;
  }
  made.problem.mask.causal = Mask::Causal::kAlignedToStart;
  AddKeep(made, 1, 1);
  made.keep = {0, 0, 0, 1};
  made.problem.mask.keep.data = made.keep.data();
  AttentionOutputs outputs = MakeOutputs(made);
  outputs.weights.push_back({0, 0, {}});
  AttentionForward(made.problem, made.inputs, outputs);
  EXPECT_NEAR(outputs.lse.view<float>()(0, 1), -20, 0.5);
  EXPECT_EQ(Values(outputs.weights[0].weights), (std::vector<double>{0, 0, 0, 1}));
  for (int64_t c = 0; c < 8; ++c) {
    EXPECT_EQ(outputs.out.view<float>()(1, 0, c), made.inputs.value.view<float>()(1, 0, c));
  }
}

TEST(AttentionCases, EmptySequences) {
  for (const auto& lengths : std::vector<std::vector<Lengths>>{
           {{0, 0}, {5, 5}, {0, 0}}, {{0, 4}, {3, 3}}, {{4, 0}, {3, 3}}, {{0, 0}}, {}}) {
    const Case made = MakeCase(F32(lengths));
    const Results want = RunReference(made);
    OnEveryIsa([&] { EXPECT_EQ(CompareWithReference(made, RunFused(made), want), ""); });
  }
}

TEST(AttentionCases, DropoutRateZeroIsNoDropout) {
  Case made = MakeCase(F32({{33, 33}, {5, 5}}));
  const Results plain = RunFused(made);
  made.problem.dropout.seed = 5;
  made.problem.dropout.layer = 3;
  made.problem.dropout.sample_ids.clear();
  const Results zero = RunFused(made);
  EXPECT_TRUE(SameBits(plain.outputs.out, zero.outputs.out));
  EXPECT_TRUE(SameBits(plain.gradients.key, zero.gradients.key));
}

TEST(AttentionCases, DropoutShareAndIndependence) {
  WeightDropout dropout;
  dropout.rate = 0.3;
  const int64_t n = 400;
  std::set<std::vector<bool>> streams;
  const auto draw = [&](int64_t sample, int64_t head) {
    const DropoutStream stream(dropout, sample, head);
    std::vector<bool> kept;
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        kept.push_back(DropoutKeepsWeight(stream, i, j));
        count += kept.back() ? 1 : 0;
      }
    }
    // Five standard errors of a share of n^2 draws.
    EXPECT_NEAR(static_cast<double>(count) / static_cast<double>(n * n), 0.7,
                5 * std::sqrt(0.21 / static_cast<double>(n * n)));
    streams.insert(kept);
  };
  draw(1, 0);
  draw(1, 1);
  draw(2, 0);
  dropout.step = 1;
  draw(1, 0);
  dropout.layer = 1;
  draw(1, 0);
  dropout.seed = 1;
  draw(1, 0);
  EXPECT_EQ(streams.size(), 6u);
}

TEST(AttentionCases, WeightsAreBeforeDropoutAndAskingChangesNothing) {
  Options options = F32({{20, 20}, {7, 7}});
  options.heads = options.kv_heads = 8;
  Case made = MakeCase(options);
  made.problem.dropout.rate = 0.5;
  AttentionOutputs plain = MakeOutputs(made), asked = MakeOutputs(made);
  asked.weights.push_back({0, 3, {}});
  AttentionForward(made.problem, made.inputs, plain);
  AttentionForward(made.problem, made.inputs, asked);
  EXPECT_TRUE(SameBits(plain.out, asked.out));
  const View<const float> weights = asked.weights[0].weights.view<float>();
  for (int64_t i = 0; i < 20; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < 20; ++j) sum += weights(i, j);
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  made.problem.dropout.rate = 0;
  AttentionOutputs undropped = MakeOutputs(made);
  undropped.weights.push_back({0, 3, {}});
  AttentionForward(made.problem, made.inputs, undropped);
  EXPECT_TRUE(SameBits(undropped.weights[0].weights, asked.weights[0].weights));
}

TEST(AttentionCases, WeightsOfLargeScoresSumToOne) {
  Options options = F32({{30, 30}}, 32);
  options.magnitude = 60;  // scores of magnitude 1e4, whose lse f32 holds to 1e-3
  const Case made = MakeCase(options);
  AttentionOutputs outputs;
  outputs.weights.push_back({0, 0, {}});
  AttentionForward(made.problem, made.inputs, outputs);
  const View<const float> weights = outputs.weights[0].weights.view<float>();
  for (int64_t i = 0; i < 30; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < 30; ++j) sum += weights(i, j);
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

// Beyond 2^31 a score times scale is rounded by more than exp2 takes. A row then looks at its
// largest score alone; gradients stay finite.
TEST(AttentionCases, HugeScoresLookAtTheLargest) {
  for (const auto& [magnitude, queries] :
       {std::pair(1e5, 20), std::pair(3e6, 20), std::pair(1e15, 20), std::pair(3e6, 1)}) {
    Options options = F32({{queries, 1100}}, 32);
    options.magnitude = static_cast<float>(magnitude);
    const Case made = MakeCase(options);
    const View<const float> query = made.inputs.query.view<float>();
    const View<const float> key = made.inputs.key.view<float>();
    const View<const float> value = made.inputs.value.view<float>();
    Results results = RunFused(made);
    AttentionOutputs asked;
    asked.weights.push_back({0, 0, {}});
    AttentionForward(made.problem, made.inputs, asked);
    for (int64_t i = 0; i < queries; ++i) {
      int64_t best = 0;
      double most = -std::numeric_limits<double>::infinity();
      for (int64_t j = 0; j < 1100; ++j) {
        double score = 0;
        for (int64_t c = 0; c < 32; ++c)
          score += static_cast<double>(query(i, 0, c)) * static_cast<double>(key(j, 0, c));
        if (score > most) most = score, best = j;
      }
      EXPECT_NEAR(asked.weights[0].weights.view<float>()(i, best), 1, 1e-6) << magnitude;
      for (int64_t c = 0; c < 32; ++c) {
        EXPECT_EQ(results.outputs.out.view<float>()(i, 0, c), value(best, 0, c)) << magnitude;
      }
    }
    for (const Tensor* tensor :
         {&results.gradients.query, &results.gradients.key, &results.gradients.value}) {
      for (double each : Values(*tensor)) ASSERT_TRUE(std::isfinite(each)) << magnitude;
    }
  }
}

TEST(AttentionCases, StatisticsSumUpTheWeights) {
  Options options = F32({{20, 20}, {7, 7}});
  options.heads = options.kv_heads = 3;
  Case made = MakeCase(options);
  made.problem.mask.causal = Mask::Causal::kAlignedToStart;
  AttentionOutputs outputs = MakeOutputs(made);
  outputs.statistics = HeadStatistics{};
  outputs.statistics->heads = {2, 0};
  outputs.statistics->key_set.assign(27, 0);
  outputs.statistics->key_set[0] = outputs.statistics->key_set[20] = 1;  // first tokens
  outputs.weights.push_back({1, 2, {}});
  AttentionForward(made.problem, made.inputs, outputs);
  const View<const float> weights = outputs.weights[0].weights.view<float>();
  const HeadStatistics& statistics = *outputs.statistics;
  for (int64_t i = 0; i < 7; ++i) {
    double entropy = 0, distance = 0, absolute = 0;
    int64_t largest = 0;
    for (int64_t j = 0; j <= i; ++j) {
      const double w = static_cast<double>(weights(i, j));
      entropy -= w * std::log(w);
      distance += w * static_cast<double>(j - i);
      absolute += w * static_cast<double>(i - j);
      if (weights(i, j) > weights(i, largest)) largest = j;
    }
    const int64_t token = 20 + i;
    EXPECT_NEAR(statistics.entropy.view<float>()(0, token), entropy, 1e-5);
    EXPECT_NEAR(statistics.distance.view<float>()(0, token), distance, 1e-5);
    EXPECT_NEAR(statistics.absolute_distance.view<float>()(0, token), absolute, 1e-5);
    EXPECT_NEAR(statistics.largest_weight.view<float>()(0, token), weights(i, largest), 1e-6);
    EXPECT_EQ(statistics.largest_key.view<int32_t>()(0, token), largest);
    EXPECT_NEAR(statistics.set_mass.view<float>()(0, token), weights(i, 0), 1e-6);
  }
}

// What the pass makes beside its output is what a second sweep makes (of a head that is asked for
// again), whatever the threads; across the key block, where sums are rescaled.
TEST(AttentionCases, StatisticsBesideTheOutputAreThoseOfASecondSweep) {
  Options options = F32({{700, 1100}, {40, 40}}, 16);
  options.heads = options.kv_heads = 2;
  Case made = MakeCase(options);
  made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
  const auto run = [&](int threads) {
    SetNumThreads(threads);
    AttentionOutputs outputs = MakeOutputs(made);
    outputs.statistics = HeadStatistics{};
    outputs.statistics->heads = {1, 0, 1};
    outputs.statistics->key_set.assign(1140, 0);
    for (size_t j = 0; j < 1140; j += 5) outputs.statistics->key_set[j] = 1;
    AttentionForward(made.problem, made.inputs, outputs);
    return *outputs.statistics;
  };
  const int before = NumThreads();
  const HeadStatistics one = run(1), three = run(3);
  SetNumThreads(before);
  const auto compare = [&](const char* name, const Tensor& tensor, const Tensor& other,
                           double tolerance) {
    EXPECT_TRUE(SameBits(tensor, other)) << name;
    const View<const float> view = tensor.view<float>();
    for (int64_t token = 0; token < 740; ++token) {
      ASSERT_NEAR(view(0, token), view(2, token), tolerance) << name << " of query " << token;
    }
  };
  compare("entropy", one.entropy, three.entropy, 1e-4);
  compare("distance", one.distance, three.distance, 6e-3);
  compare("absolute distance", one.absolute_distance, three.absolute_distance, 6e-3);
  compare("largest weight", one.largest_weight, three.largest_weight, 1e-5);
  compare("mass", one.set_mass, three.set_mass, 1e-5);
  for (int64_t token = 0; token < 740; ++token) {
    const View<const int32_t> keys = one.largest_key.view<int32_t>();
    EXPECT_EQ(keys(0, token), keys(2, token)) << token;
  }
}

// Fused weights and statistics against the reference's, with masks, blocks and relative positions.
TEST(AttentionCases, FusedProbesLikeReference) {
  Options options = F32({{20, 20}, {0, 3}, {37, 601}, {5, 0}}, 16);
  options.heads = 4;
  options.kv_heads = 2;
  for (int64_t longest : {0, 30}) {
    options.relative_max = longest;
    Case made = MakeCase(options);
    made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
    made.problem.mask.window = Mask::Window{550, 0};
    AddKeep(made, 0.7, 3);
    const auto ask = [&] {
      AttentionOutputs outputs;
      for (int64_t s : {0, 1, 2, 3}) outputs.weights.push_back({s, 3, {}});
      outputs.statistics = HeadStatistics{};
      outputs.statistics->heads = {1, 3};
      outputs.statistics->key_set.assign(static_cast<size_t>(made.problem.key_tokens()), 0);
      for (size_t j = 0; j < outputs.statistics->key_set.size(); j += 3) {
        outputs.statistics->key_set[j] = 1;
      }
      return outputs;
    };
    AttentionOutputs want = ask();
    AttentionForwardReference(made.problem, made.inputs, want);
    OnEveryIsa([&] {
      AttentionOutputs got = ask();
      AttentionForward(made.problem, made.inputs, got);
      // Weights are off by eps * (2 S + a few), S <= 40 here; distances are weighed by up to 600.
      for (size_t s = 0; s < 4; ++s) {
        EXPECT_EQ(Difference("weights", got.weights[s].weights, want.weights[s].weights, 1e-5), "");
      }
      const HeadStatistics &x = *got.statistics, &y = *want.statistics;
      EXPECT_EQ(Difference("entropy", x.entropy, y.entropy, 1e-4), "");
      EXPECT_EQ(Difference("distance", x.distance, y.distance, 6e-3), "");
      EXPECT_EQ(Difference("absolute", x.absolute_distance, y.absolute_distance, 6e-3), "");
      EXPECT_EQ(Difference("largest", x.largest_weight, y.largest_weight, 1e-5), "");
      EXPECT_EQ(Difference("mass", x.set_mass, y.set_mass, 1e-5), "");
      const View<const int32_t> keys = x.largest_key.view<int32_t>();
      const View<const int32_t> want_keys = y.largest_key.view<int32_t>();
      for (int64_t h = 0; h < 2; ++h) {
        for (int64_t t = 0; t < made.problem.query_tokens(); ++t) {
          EXPECT_EQ(keys(h, t), want_keys(h, t)) << h << ", " << t;
        }
      }
    });
  }
}

// The largest weights by key: those of the weights asked for, in order, the first of equals first.
TEST(AttentionCases, LargestWeightsAndTheirKeys) {
  Options options = F32({{37, 601}, {0, 3}, {20, 20}, {5, 0}}, 16);
  options.heads = options.kv_heads = 2;
  for (bool equal : {false, true}) {
    for (int64_t top : {1, 5, 33}) {
      Case made = MakeCase(options);
      made.problem.mask.causal = Mask::Causal::kAlignedToEnd;
      AddKeep(made, 0.7, 3);
      if (equal) made.inputs.query.FillZero();
      const auto ask = [&] {
        AttentionOutputs outputs;
        for (int64_t s : {0, 2, 3}) outputs.weights.push_back({s, 1, {}});
        outputs.statistics = HeadStatistics{};
        outputs.statistics->heads = {1};
        outputs.statistics->top = top;
        return outputs;
      };
      AttentionOutputs want = ask();
      AttentionForwardReference(made.problem, made.inputs, want);
      const auto check = [&](const AttentionOutputs& got) {
        const View<const int32_t> keys = got.statistics->top_keys.view<int32_t>();
        const View<const float> weights = got.statistics->top_weights.view<float>();
        for (const HeadWeights& of : got.weights) {
          const int64_t first = made.problem.query_offsets[static_cast<size_t>(of.sequence)];
          const View<const float> all = of.weights.view<float>();
          for (int64_t i = 0; i < all.size(0); ++i) {
            std::vector<int32_t> sorted;
            for (int64_t j = 0; j < all.size(1); ++j) {
              if (all(i, j) > 0) sorted.push_back(static_cast<int32_t>(j));
            }
            std::stable_sort(sorted.begin(), sorted.end(),
                             [&](int32_t a, int32_t b) { return all(i, a) > all(i, b); });
            for (int64_t place = 0; place < top; ++place) {
              const bool there = static_cast<size_t>(place) < sorted.size();
              const int32_t key = there ? sorted[static_cast<size_t>(place)] : -1;
              ASSERT_EQ(weights(0, first + i, place), there ? all(i, key) : 0) << i << " " << place;
              // Normalisation may make two weights equal that were not before it.
              const bool tie = there && keys(0, first + i, place) >= 0 &&
                               all(i, keys(0, first + i, place)) == all(i, key);
              ASSERT_TRUE(keys(0, first + i, place) == key || (tie && !equal)) << i << " " << place;
            }
          }
        }
      };
      check(want);
      OnEveryIsa([&] {
        AttentionOutputs got = ask();
        AttentionForward(made.problem, made.inputs, got);
        check(got);
        EXPECT_EQ(
            Difference("top", got.statistics->top_weights, want.statistics->top_weights, 1e-5), "");
      });
    }
  }
  Case made = MakeCase(F32({{5, 5}}));
  AttentionOutputs outputs;
  outputs.statistics = HeadStatistics{};
  outputs.statistics->top = -1;
  EXPECT_THROW(AttentionForward(made.problem, made.inputs, outputs), Error);
}

}  // namespace
}  // namespace headlight
