// The readers on real files: the row counts that HEADLIGHT_DATA's README states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "headlight/text/describe.h"
#include "headlight/text/readers.h"
#include "headlight/text/split.h"
#include "headlight/text/text_encoder.h"

namespace headlight {
namespace {

using testing::ElementsAre;

class RealDataTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("HEADLIGHT_DATA");
    if (root == nullptr) GTEST_SKIP() << "no HEADLIGHT_DATA";
    root_ = root;
  }
  std::string Path(const std::string& path) const { return root_ + "/" + path; }

  std::string root_;
};

// "label=count" of each label.
std::vector<std::string> LabelCounts(const Dataset& dataset) {
  std::vector<std::string> counts;
  for (const std::string& label : dataset.Labels()) {
    int64_t count = 0;
    for (const Example& example : dataset.examples) count += example.label == label ? 1 : 0;
    counts.push_back(label + "=" + std::to_string(count));
  }
  return counts;
}

int64_t DefectCount(const Dataset& dataset, const Dataset* valid, const std::string& name) {
  for (const Defect& defect : Describe(dataset, valid, {}).defects) {
    if (defect.name == name) return defect.occurrences;
  }
  return -1;
}

TEST_F(RealDataTest, ImdbArchive) {
  const DatasetParts parts =
      ReadDatasetParts({Path("imdb/shared_imdb_10000train_2500valid.tar.gz")}, {});
  EXPECT_TRUE(parts.has_parts);
  EXPECT_EQ(parts.train.format, "archive");
  EXPECT_THAT(LabelCounts(parts.train), ElementsAre("neg=5000", "pos=5000"));
  EXPECT_THAT(LabelCounts(parts.valid), ElementsAre("neg=1250", "pos=1250"));
  EXPECT_TRUE(parts.test.examples.empty());
  int64_t with_break = 0;
  for (const Example& example : parts.train.examples) {
    with_break += example.text.find("<br />") != std::string::npos ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(with_break) / 10000, 0.58, 0.01);
}

TEST_F(RealDataTest, ChnSentiCorpCsv) {
  const Dataset dataset = ReadDataset({Path("chnsenticorp/ChnSentiCorp_htl_all.csv")}, {});
  EXPECT_EQ(dataset.format, "csv");
  EXPECT_EQ(dataset.examples.size(), 7766u);
  EXPECT_THAT(LabelCounts(dataset), ElementsAre("0=2444", "1=5322"));
  EXPECT_EQ(DefectCount(dataset, nullptr, "empty texts"), 1);
  const TrainValid parts = StratifiedSplit(dataset, {0.2, 1});
  EXPECT_EQ(parts.train.examples.size() + parts.valid.examples.size(), 7766u);
  EXPECT_EQ(DefectCount(parts.train, &parts.valid, "texts in both train and valid"), 0);
}

TEST_F(RealDataTest, Banking77Csv) {
  const Dataset dataset = ReadDataset({Path("banking77/train.csv")}, {});
  EXPECT_EQ(dataset.format, "csv");
  EXPECT_EQ(dataset.examples.size(), 10003u);
  EXPECT_EQ(dataset.Labels().size(), 77u);
  EXPECT_EQ(dataset.examples[0].label, "card_arrival");
}

TEST_F(RealDataTest, Sib200Tsv) {
  for (const char* language : {"eng_Latn", "zho_Hans"}) {
    const DatasetParts parts = ReadDatasetParts({Path(std::string("sib200/") + language)}, {});
    EXPECT_EQ(parts.train.format, "tsv");
    EXPECT_EQ(parts.train.examples.size(), 701u);
    EXPECT_EQ(parts.valid.examples.size(), 99u);
    EXPECT_EQ(parts.train.Labels().size(), 7u);
  }
}

TEST_F(RealDataTest, ThucNewsTextLabel) {
  const Dataset dataset = ReadDataset({Path("thucnews_titles/dev.txt")}, {});
  EXPECT_EQ(dataset.format, "text-label");
  EXPECT_EQ(dataset.examples.size(), 10000u);
  EXPECT_EQ(dataset.Labels().size(), 10u);
  EXPECT_EQ(DefectCount(dataset, nullptr, "replacement characters"), 35);
}

TEST_F(RealDataTest, SstLabelText) {
  const Dataset train = ReadDataset({Path("sst2/stsa.binary.train")}, {});
  EXPECT_EQ(train.format, "label-text");
  EXPECT_EQ(train.examples.size(), 6920u);
  EXPECT_EQ(train.Labels().size(), 2u);
  EXPECT_EQ(ReadDataset({Path("sst2/stsa.binary.dev")}, {}).examples.size(), 872u);
  const DatasetParts parts = ReadDatasetParts({Path("sst2")}, {});
  EXPECT_EQ(parts.train.examples.size(), 6920u);
  EXPECT_EQ(parts.valid.examples.size(), 872u);
}

}  // namespace
}  // namespace headlight
