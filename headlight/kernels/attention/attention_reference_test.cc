// The reference against central differences in double, and against values worked out by hand.
#include <gtest/gtest.h>

#include "headlight/kernels/attention/attention_gradient_test-inl.h"

namespace headlight {
namespace {

using namespace attention_test;

TEST(AttentionReference, GradientsPlain) { ExpectAllGradients(MakeCase(SmallOptions())); }

TEST(AttentionReference, GradientsOfMasks) {
  for (Mask::Causal causal : {Mask::Causal::kAlignedToStart, Mask::Causal::kAlignedToEnd}) {
    Case made = MakeCase(SmallOptions());
    made.problem.mask.causal = causal;
    ExpectAllGradients(made);
  }
  Case window = MakeCase(SmallOptions());
  window.problem.mask.window = Mask::Window{1, 1};
  ExpectAllGradients(window);
  Case lengths = MakeCase(SmallOptions());
  lengths.problem.mask.key_lengths = {2, 5, 0};
  ExpectAllGradients(lengths);
  Case keep = MakeCase(SmallOptions());
  AddKeep(keep, 0.5, 3);
  ExpectAllGradients(keep);
  for (int64_t heads : {1, 2}) {
    Case blocks = MakeCase(SmallOptions());
    AddBlocks(blocks, 0.6, {2, 3, heads, {}, {}}, 6);
    ExpectAllGradients(blocks);
  }
  Case documents = MakeCase(SmallOptions());
  AddDocuments(documents, 2, 5);
  ExpectAllGradients(documents);
}

TEST(AttentionReference, GradientsOfSharedKeyHeadsAndScale) {
  Options options = SmallOptions();
  options.heads = 4;
  Case made = MakeCase(options);
  made.problem.scale = 0.7;
  ExpectAllGradients(made);
}

TEST(AttentionReference, GradientsOfRelativePositions) {
  for (int64_t longest : {2, 6}) {  // with and without clamping
    Options options = SmallOptions();
    options.relative_max = longest;
    ExpectAllGradients(MakeCase(options));
  }
}

TEST(AttentionReference, GradientsOfDropout) {
  Options options = SmallOptions();
  options.relative_max = 3;
  Case made = MakeCase(options);
  made.problem.dropout.rate = 0.4;
  made.problem.dropout.seed = 11;
  ExpectAllGradients(made);
}

TEST(AttentionReference, TableGradientsAreAddedTo) {
  Options options = SmallOptions();
  options.relative_max = 3;
  const Case made = MakeCase(options);
  AttentionGradients once = MakeGradients(made), twice = MakeGradients(made);
  AttentionBackwardReference(made.problem, made.inputs, made.out_gradient, once);
  AttentionBackwardReference(made.problem, made.inputs, made.out_gradient, twice);
  AttentionBackwardReference(made.problem, made.inputs, made.out_gradient, twice);
  const std::vector<double> a = Values(once.relative_keys), b = Values(twice.relative_keys);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_DOUBLE_EQ(2 * a[i], b[i]);
  EXPECT_TRUE(SameBits(once.query, twice.query));
}

}  // namespace
}  // namespace headlight
