#include "headlight/text/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "headlight/base/error.h"
#include "headlight/base/random.h"
#include "headlight/io/file.h"
#include "headlight/text/unicode.h"

namespace headlight {
namespace {

Dataset MakeDataset(int rows) {
  Dataset dataset;
  dataset.format = "csv";
  for (int i = 0; i < rows; ++i) {
    dataset.examples.push_back(
        {"text " + std::to_string(i), i % 10 < 7 ? "a" : "b", "f:" + std::to_string(i)});
  }
  return dataset;
}

std::vector<std::string> Origins(const Dataset& dataset) {
  std::vector<std::string> origins;
  for (const Example& example : dataset.examples) origins.push_back(example.origin);
  return origins;
}

std::map<std::string, int> LabelCounts(const Dataset& dataset) {
  std::map<std::string, int> counts;
  for (const Example& example : dataset.examples) ++counts[example.label];
  return counts;
}

TEST(SplitTest, KeepsProportionsAndOrder) {
  const TrainValid parts = StratifiedSplit(MakeDataset(1000), {0.2, 1});
  EXPECT_EQ(LabelCounts(parts.valid), (std::map<std::string, int>{{"a", 140}, {"b", 60}}));
  EXPECT_EQ(LabelCounts(parts.train), (std::map<std::string, int>{{"a", 560}, {"b", 240}}));
  int last = -1;
  for (const Example& example : parts.valid.examples) {
    const int row = std::stoi(example.origin.substr(2));
    EXPECT_GT(row, last);
    last = row;
  }
}

TEST(SplitTest, SeedDecides) {
  const Dataset dataset = MakeDataset(200);
  const auto valid = [&](uint64_t seed) {
    return Origins(StratifiedSplit(dataset, {0.2, seed}).valid);
  };
  EXPECT_EQ(valid(1), valid(1));
  EXPECT_NE(valid(1), valid(2));
}

TEST(SplitTest, CopiesStayTogether) {
  RandomStream random(3, 0);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Dataset dataset;
    for (int i = 0; i < 300; ++i) {
      const std::string text = "t " + std::to_string(random.Below(120));
      dataset.examples.push_back(
          {random.Below(2) == 0 ? text : " " + text + "\n", random.Below(3) == 0 ? "a" : "b", "f"});
    }
    const TrainValid parts = StratifiedSplit(dataset, {0.3, seed});
    std::set<std::string> train;
    for (const Example& example : parts.train.examples) train.insert(TextKey(example.text));
    for (const Example& example : parts.valid.examples) {
      ASSERT_EQ(train.count(TextKey(example.text)), 0u);
    }
    EXPECT_EQ(parts.train.examples.size() + parts.valid.examples.size(), 300u);
    EXPECT_NEAR(static_cast<double>(parts.valid.examples.size()), 90, 10);
  }
}

TEST(SplitTest, SmallLabelsAreOnBothSides) {
  Dataset dataset = MakeDataset(100);
  dataset.examples.push_back({"rare one", "c", "f"});
  dataset.examples.push_back({"rare two", "c", "f"});
  dataset.examples.push_back({"single", "d", "f"});
  for (const double share : {0.01, 0.2, 0.99}) {
    const TrainValid parts = StratifiedSplit(dataset, {share, 5});
    EXPECT_EQ(LabelCounts(parts.train)["c"], 1) << share;
    EXPECT_EQ(LabelCounts(parts.valid)["c"], 1) << share;
  }
}

TEST(SplitTest, Errors) {
  for (const double share : {0.0, 1.0, -1.0, std::nan("")}) {
    EXPECT_THROW(StratifiedSplit(MakeDataset(10), {share, 1}), Error) << share;
  }
  EXPECT_THROW(StratifiedSplit(MakeDataset(1), {0.2, 1}), Error);
  EXPECT_THROW(StratifiedSplit({}, {0.2, 1}), Error);
}

TEST(SplitTest, WrittenDatasetsReadBack) {
  const Dataset dataset{{{"plain", "a", ""},
                         {"a, \"quoted\"\r\nline", "b,c", ""},
                         {"tab\tand 中文 \\ /", "标签", ""},
                         {"", "a", ""},
                         {" edges ", "a", ""}},
                        "csv"};
  for (const DataFormat format : {DataFormat::kCsv, DataFormat::kJsonl}) {
    const std::string bytes = FormatDataset(dataset, format);
    EXPECT_EQ(DetectFormat(bytes, "f"), format);
    const Dataset read = ParseDataset(bytes, "f", DataFormat::kAuto, {});
    ASSERT_EQ(read.examples.size(), dataset.examples.size());
    for (size_t i = 0; i < read.examples.size(); ++i) {
      EXPECT_EQ(read.examples[i].text, dataset.examples[i].text);
      EXPECT_EQ(read.examples[i].label, dataset.examples[i].label);
    }
    const std::string path = testing::TempDir() + "headlight_split_test";
    WriteFileAtomically(path, FormatDataset(dataset, format));
    EXPECT_EQ(ReadDataset({path}, {}).examples.size(), 5u);
    std::remove(path.c_str());
  }
  const Dataset broken{{{"x\xFF", "a", "f:1"}}, "csv"};
  EXPECT_THROW(FormatDataset(broken, DataFormat::kJsonl), Error);
  EXPECT_NE(FormatDataset(broken, DataFormat::kCsv).find('\xFF'), std::string::npos);
  EXPECT_THROW(FormatDataset(dataset, DataFormat::kTsv), Error);
}

}  // namespace
}  // namespace headlight
