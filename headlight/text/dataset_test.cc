#include "headlight/text/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headlight {
namespace {

using testing::ElementsAre;

Dataset WithLabels(const std::vector<std::string>& labels) {
  Dataset dataset;
  for (const std::string& label : labels) dataset.examples.push_back({"text", label, "f:1"});
  return dataset;
}

TEST(DatasetTest, LabelsAreSorted) {
  EXPECT_THAT(WithLabels({"b", "a", "", "b", "中"}).Labels(), ElementsAre("a", "b", "中"));
  EXPECT_THAT(WithLabels({"10", "9", "-1", "0"}).Labels(), ElementsAre("-1", "0", "9", "10"));
  EXPECT_THAT(WithLabels({"10", "9", "x"}).Labels(), ElementsAre("10", "9", "x"));
  EXPECT_THAT(WithLabels({"99999999999999999999", "5"}).Labels(),
              ElementsAre("5", "99999999999999999999"));
  EXPECT_THAT(WithLabels({"1", "01"}).Labels(), ElementsAre("01", "1"));
}

TEST(DatasetTest, DropUnusable) {
  Dataset dataset = WithLabels({"a", "", "b", "b"});
  dataset.examples[2].text = " \xE3\x80\x80\n";
  EXPECT_EQ(DropUnusable(&dataset), 2);
  ASSERT_EQ(dataset.examples.size(), 2u);
  EXPECT_EQ(dataset.examples[1].label, "b");
  EXPECT_EQ(DropUnusable(&dataset), 0);
  EXPECT_EQ(dataset.dropped, 2);
  EXPECT_EQ(DroppedNote(dataset), "; 2 more rows are skipped, for their text or label is empty");
  EXPECT_EQ(DroppedNote(WithLabels({"a"})), "");
}

}  // namespace
}  // namespace headlight
