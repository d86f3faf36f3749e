#include "headlight/text/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headlight {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Defect& DefectNamed(const DatasetDescription& description, const std::string& name) {
  for (const Defect& defect : description.defects) {
    if (defect.name == name) return defect;
  }
  throw std::runtime_error("no defect " + name);
}

TEST(DescribeTest, CountsAndLengths) {
  Dataset dataset;
  dataset.format = "csv";
  for (int i = 1; i <= 100; ++i) {
    std::string text;
    for (int word = 0; word < i; ++word) text += "w ";
    dataset.examples.push_back({text + "文", i <= 30 ? "b" : "a", "f:" + std::to_string(i)});
  }
  const DatasetDescription description = Describe(dataset, nullptr, {});
  EXPECT_EQ(description.rows, 100);
  EXPECT_EQ(description.format, "csv");
  ASSERT_EQ(description.labels.size(), 2u);
  EXPECT_EQ(description.labels[0].label, "a");
  EXPECT_EQ(description.labels[0].count, 70);
  EXPECT_EQ(description.labels[1].count, 30);
  EXPECT_EQ(description.lengths.p50, 51);
  EXPECT_EQ(description.lengths.p90, 91);
  EXPECT_EQ(description.lengths.p99, 100);
  EXPECT_EQ(description.lengths.max, 101);
  EXPECT_EQ(description.lengths.total, 5150);
  ASSERT_EQ(description.scripts.size(), 2u);
  EXPECT_EQ(description.scripts[0].script, "Latin");
  EXPECT_EQ(description.scripts[1].script, "Han");
  EXPECT_EQ(description.scripts[1].characters, 100);
  for (const Defect& defect : description.defects) EXPECT_EQ(defect.count, 0) << defect.name;
  EXPECT_EQ(description.defects.size(), 7u);
}

TEST(DescribeTest, Defects) {
  const Dataset train{{{" \n", "a", "f:1"},
                       {"same", "a", "f:2"},
                       {"same ", "a", "f:3"},
                       {"same", "b", "f:4"},
                       {"same", "b", "f:5"},
                       {"x\xFF\xFE", "", "f:6"},
                       {"\xEF\xBF\xBD\xEF\xBF\xBD y", "b", "f:7"},
                       {"cafe\xCC\x81", "b", "f:8"},
                       {"", "a", "f:9"}},
                      "csv"};
  const Dataset valid{{{"café", "b", "v:1"}, {"", "a", "v:2"}, {"other", "a", "v:3"}}, "csv"};
  const DatasetDescription description = Describe(train, &valid, {});
  EXPECT_THAT(DefectNamed(description, "empty texts").places, ElementsAre("f:1", "f:9"));
  EXPECT_THAT(DefectNamed(description, "empty labels").places, ElementsAre("f:6"));
  EXPECT_THAT(DefectNamed(description, "duplicates").places, ElementsAre("f:3", "f:5"));
  EXPECT_THAT(DefectNamed(description, "texts with two labels").places,
              ElementsAre("f:4 ('b'; 'a' in f:2)"));
  EXPECT_THAT(DefectNamed(description, "texts in both train and valid").places,
              ElementsAre("f:8 (as v:1)"));
  const Defect& broken = DefectNamed(description, "broken UTF-8");
  EXPECT_EQ(broken.count, 1);
  EXPECT_EQ(broken.occurrences, 2);
  EXPECT_THAT(broken.places, ElementsAre("f:6 (byte 1 of the text)"));
  const Defect& replaced = DefectNamed(description, "replacement characters");
  EXPECT_EQ(replaced.count, 1);
  EXPECT_EQ(replaced.occurrences, 2);
}

TEST(DescribeTest, PlacesAreTheFirst) {
  Dataset dataset;
  for (int i = 0; i < 20; ++i) dataset.examples.push_back({"", "a", "f:" + std::to_string(i)});
  DescribeOptions options;
  options.max_places = 2;
  const DatasetDescription description = Describe(dataset, nullptr, options);
  EXPECT_EQ(DefectNamed(description, "empty texts").count, 20);
  EXPECT_THAT(DefectNamed(description, "empty texts").places, ElementsAre("f:0", "f:1"));
  const DatasetDescription nothing = Describe({}, nullptr, {});
  EXPECT_EQ(nothing.rows, 0);
  EXPECT_EQ(nothing.lengths.max, 0);
  EXPECT_THAT(nothing.labels, IsEmpty());
}

}  // namespace
}  // namespace headlight
