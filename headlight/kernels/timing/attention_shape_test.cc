#include "headlight/kernels/timing/attention_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "headlight/base/error.h"

namespace headlight {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The message of a refused shape, with its kind checked.
std::string Refusal(std::string_view text) {
  try {
    ParseAttentionShape(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "taken: " << text;
  return "";
}

std::string ListRefusal(std::string_view text) {
  try {
    ParseAttentionShapes(text, "list.txt");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "taken: " << text;
  return "";
}

TEST(AttentionShape, DefaultsFollowFromWhatIsGiven) {
  const AttentionShape shape = ParseAttentionShape("h8 n100 d64");
  EXPECT_EQ(shape.batch, 1);
  EXPECT_EQ(shape.KvHeads(), 8);
  EXPECT_EQ(shape.Queries(), 100);
  EXPECT_EQ(shape.ValueDim(), 64);
  EXPECT_EQ(shape.dtype, DType::kF32);
  EXPECT_FALSE(shape.backward);
}

TEST(AttentionShape, EveryWordReachesTheProblem) {
  const AttentionShape shape = ParseAttentionShape(
      "b3 h8 kv2 q5 n40 d16 dv24 f64 causal=start window=7,0 keys=30 relative dropout=0.25 "
      "statistics weights=2");
  const AttentionProblem problem = MakeAttentionProblem(shape);
  EXPECT_EQ(problem.query_offsets, (std::vector<int64_t>{0, 5, 10, 15}));
  EXPECT_EQ(problem.key_offsets, (std::vector<int64_t>{0, 40, 80, 120}));
  EXPECT_EQ(problem.heads, 8);
  EXPECT_EQ(problem.kv_heads, 2);
  EXPECT_EQ(problem.head_dim, 16);
  EXPECT_EQ(problem.value_dim, 24);
  EXPECT_EQ(problem.dtype, DType::kF64);
  EXPECT_EQ(problem.mask.causal, Mask::Causal::kAlignedToStart);
  ASSERT_TRUE(problem.mask.window.has_value());
  EXPECT_EQ(problem.mask.window->left, 7);
  EXPECT_EQ(problem.mask.window->right, 0);
  EXPECT_EQ(problem.mask.key_lengths, (std::vector<int64_t>{30, 30, 30}));
  EXPECT_EQ(problem.relative.keys.shape().ToString(), (Shape{8, 79, 16}).ToString());
  EXPECT_EQ(problem.relative.values.shape().ToString(), (Shape{8, 79, 24}).ToString());
  EXPECT_EQ(problem.dropout.rate, 0.25);
  EXPECT_EQ(problem.precision, Precision::kF32);
  EXPECT_EQ(MakeAttentionProblem(ParseAttentionShape("n8 d16 bf16")).precision, Precision::kBF16);
  EXPECT_EQ(problem.dropout.sample_ids.size(), 3u);
  EXPECT_TRUE(shape.statistics);
  EXPECT_EQ(shape.weights, 2);
  EXPECT_EQ(shape.implementation, AttentionImplementation::kFused);
  EXPECT_EQ(ParseAttentionShape("n8 d16 by=per-head").implementation,
            AttentionImplementation::kPerHead);
}

TEST(AttentionShape, BlocksAreSpreadOverEveryRowOfBlocks) {
  const AttentionProblem problem =
      MakeAttentionProblem(ParseAttentionShape("b2 n300 d8 blocks=40"));
  ASSERT_TRUE(problem.mask.blocks.has_value());
  const Mask::BlockList& list = *problem.mask.blocks;
  EXPECT_EQ(list.query_block, 64);
  EXPECT_EQ(list.key_block, 64);
  // Two of five in each of five rows, of two sequences.
  EXPECT_EQ(list.offsets, (std::vector<int64_t>{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20}));
  EXPECT_EQ(list.key_blocks, (std::vector<int32_t>{0, 2, 1, 3, 2, 4, 0, 3, 1, 4,  //
                                                   0, 2, 1, 3, 2, 4, 0, 3, 1, 4}));
}

TEST(AttentionShape, WordsComeInAnyOrderAndAreWrittenInOne) {
  EXPECT_EQ(ParseAttentionShape("  causal d64\tn10 window=1,2 h2 ").ToString(),
            "b1 h2 n10 d64 causal window=1,2");
  EXPECT_EQ(ParseAttentionShape("n10 d8 causal=end"), ParseAttentionShape("d8 causal n10"));
  EXPECT_EQ(ParseAttentionShape("n10 d8 dropout=0.1 backward ragged").ToString(),
            "b1 h1 n10 d8 ragged dropout=0.1 backward");
  EXPECT_EQ(ParseAttentionShape("by=naive n10 d8").ToString(), "b1 h1 n10 d8 by=naive");
  EXPECT_EQ(ParseAttentionShape("blocks=10 n100 d8").ToString(), "b1 h1 n100 d8 blocks=10");
}

TEST(AttentionShape, RaggedLengthsGrowEvenly) {
  const AttentionShape shape = ParseAttentionShape("b4 n80 d8 ragged");
  EXPECT_EQ(shape.KeysOf(0), 10);
  EXPECT_EQ(shape.KeysOf(1), 27);
  EXPECT_EQ(shape.QueriesOf(3), 62);
  EXPECT_EQ(ParseAttentionShape("b4 n3 d8 ragged").KeysOf(0), 1);
}

TEST(AttentionShape, FlopsCountWhatIsKept) {
  const auto flops = [](const char* text) { return AttentionFlops(ParseAttentionShape(text)); };
  EXPECT_EQ(flops("b2 h3 n10 d4"), 4.0 * 2 * 3 * 10 * 10 * 4);
  EXPECT_EQ(flops("b2 h3 n10 d4 backward"), 10.0 * 2 * 3 * 10 * 10 * 4);
  EXPECT_EQ(flops("n10 d4 dv6"), 2.0 * 10 * 10 * 10);
  EXPECT_EQ(flops("n10 d4 causal"), 4.0 * 55 * 4);
  EXPECT_EQ(flops("q2 n10 d4 causal"), 4.0 * (9 + 10) * 4);
  EXPECT_EQ(flops("q2 n10 d4 causal=start"), 4.0 * (1 + 2) * 4);
  EXPECT_EQ(flops("n10 d4 window=1,2"), 4.0 * (3 + 4 * 7 + 3 + 2) * 4);
  EXPECT_EQ(flops("n10 d4 window=3,5 causal"), 4.0 * (1 + 2 + 3 + 4 * 7) * 4);
  EXPECT_EQ(flops("n10 d4 keys=3"), 4.0 * 30 * 4);
  EXPECT_EQ(flops("b2 n8 d4 ragged"), 4.0 * (1 + 4 * 4) * 4);
  EXPECT_EQ(flops("b2 h3 n100 d4 blocks=50"), 4.0 * 2 * 3 * (64 * 64 + 36 * 36) * 4);
  EXPECT_EQ(flops("n100 d4 blocks=100"), 4.0 * 100 * 100 * 4);
  EXPECT_EQ(flops("n10 d4 by=naive"), 4.0 * 100 * 4);
}

TEST(AttentionShape, RefusalsNameTheWordAndTheRule) {
  EXPECT_THAT(Refusal("b1 nX d64"), AllOf(HasSubstr("\"b1 nX d64\""), HasSubstr("\"nX\""),
                                          HasSubstr("n<N> (keys of a sequence)")));
  EXPECT_THAT(Refusal("n5 d8 casual"), AllOf(HasSubstr("\"casual\""), HasSubstr("causal")));
  EXPECT_THAT(Refusal("n5 d8 n6"), HasSubstr("n is given twice"));
  EXPECT_THAT(Refusal("n5 d8 causal causal=start"), HasSubstr("causal is given twice"));
  EXPECT_THAT(Refusal(""), HasSubstr("n<N>, the number of keys, is missing"));
  EXPECT_THAT(Refusal("n5"), HasSubstr("d<N>, the width of a head, is missing"));
  EXPECT_THAT(Refusal("h8 kv3 n5 d8"), HasSubstr("kv must divide h, found kv3 and h8"));
  EXPECT_THAT(Refusal("n5 d8 keys=6"), HasSubstr("keys= must be at most n"));
  EXPECT_THAT(Refusal("n5 q1 d8 ragged"), HasSubstr("ragged"));
  EXPECT_THAT(Refusal("n5 d8 ragged bhnd"), HasSubstr("ragged goes not with bhnd"));
  EXPECT_THAT(Refusal("n5 d8 bhnd by=naive"), HasSubstr("bhnd"));
  EXPECT_THAT(Refusal("n5 d8 statistics backward"), HasSubstr("forward pass"));
  EXPECT_THAT(Refusal("h2 n5 d8 weights=3"), HasSubstr("weights= must be at most h"));
  EXPECT_THAT(Refusal("n5 d8 blocks=101"), HasSubstr("blocks= must be at most 100"));
  EXPECT_THAT(Refusal("n5 d8 blocks=10 causal"), HasSubstr("no other mask"));
  EXPECT_THAT(Refusal("n5 d8 blocks=10 by=naive"), HasSubstr("neither blocks="));
  EXPECT_THAT(Refusal("h16 n8192 d8 by=naive"), HasSubstr("GiB"));
  EXPECT_THAT(Refusal("h8 n8192 d8 by=per-head dropout=0.1"), HasSubstr("GiB"));
  EXPECT_THAT(Refusal("b64 n1048576 d1 blocks=100"), HasSubstr("GiB"));
  EXPECT_THAT(Refusal("b1000000 h100 n1000000 d64"), HasSubstr("GiB"));
  EXPECT_THAT(Refusal("n100000 h8 d64 weights=8"), HasSubstr("GiB"));
}

TEST(AttentionShape, TensorsMayBeStoredInHalfPrecision) {
  const AttentionShape bf16 = ParseAttentionShape("q1 n64 d8 stored=bf16");
  EXPECT_EQ(MakeAttentionProblem(bf16).dtype, DType::kBF16);
  EXPECT_EQ(bf16.ToString(), "b1 h1 q1 n64 d8 stored=bf16");
  EXPECT_EQ(ParseAttentionShape("n64 d8 stored=f16").dtype, DType::kF16);
  EXPECT_LT(bf16.Bytes(), 0.6 * ParseAttentionShape("q1 n64 d8").Bytes());
  for (const char* word : {"stored=f32", "stored", "stored=bf16 f64", "f64 stored=f16",
                           "stored=bf16 relative", "stored=bf16 by=naive"}) {
    EXPECT_THAT(Refusal(std::string("n5 d8 ") + word), HasSubstr("shape")) << word;
  }
}

TEST(AttentionShape, RefusesValuesThatAreNone) {
  for (const char* word :
       {"n0",           "n-1",         "n",         "n1.5",      "n9999999999999999999999",
        "n1048577",     "n=5",         "n5x",       "N5",        "window",
        "window=",      "window=1",    "window=1,", "window=,1", "window=-1,1",
        "window=1,2,3", "window1,2",   "keys=0",    "keys5",     "dropout=0",
        "dropout=1",    "dropout=nan", "dropout",   "causal=",   "causal=middle",
        "ragged=1",     "f64=1",       "weights",   "by=fused",  "by=naive,per-head",
        "by",           "blocks=0",    "=",         "=5",        "5"}) {
    EXPECT_THAT(Refusal(std::string("d8 ") + word), HasSubstr("shape")) << word;
  }
}

TEST(AttentionShape, MessagesAreShortAndPlain) {
  const std::string message = Refusal(std::string(10000, 'x') + "\x1b[31m\xff");
  EXPECT_LT(message.size(), 600u);
  const std::string control = Refusal("\x1b[31m\xff");
  EXPECT_EQ(control.find('\x1b'), std::string::npos);
  EXPECT_EQ(control.find('\xff'), std::string::npos);
}

TEST(AttentionShapeList, TakesCommentsAndBlankLines) {
  const std::vector<AttentionShape> shapes =
      ParseAttentionShapes("# one\n\n b1 n5 d8 # short\r\nb2 n6 d8 causal", "list.txt");
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[0].ToString(), "b1 h1 n5 d8");
  EXPECT_EQ(shapes[1].ToString(), "b2 h1 n6 d8 causal");
}

TEST(AttentionShapeList, RefusalsNameTheLine) {
  EXPECT_THAT(ListRefusal("# one\nn5 d8\nn5 d\n"),
              AllOf(testing::StartsWith("list.txt:3: shape \"n5 d\""), HasSubstr("d<N>")));
  EXPECT_THAT(ListRefusal(""), AllOf(HasSubstr("list.txt: holds no shape"), HasSubstr("b1 h8")));
  EXPECT_THAT(ListRefusal("# only words\n"), HasSubstr("holds no shape"));
  std::string many;
  for (int i = 0; i < 10001; ++i) many += "n1 d1\n";
  EXPECT_THAT(ListRefusal(many), AllOf(HasSubstr("list.txt:10001:"), HasSubstr("10000")));
}

TEST(AttentionShapeList, OursAreShapes) {
  int lists = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(HEADLIGHT_SOURCE_DIR) + "/bench/shapes")) {
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_GT(ParseAttentionShapes(text.str(), entry.path().filename()).size(), 1u);
    ++lists;
  }
  EXPECT_GE(lists, 6);
}

}  // namespace
}  // namespace headlight
