#include "headlight/experiment/grid.h"

#include <gtest/gtest.h>

#include "headlight/base/error.h"

namespace headlight {
namespace {

TEST(Grid, ExpandsInOrder) {
  const auto cells = ExpandGrid({ParseVariation("heads=1,8"), ParseVariation("--norm=pre,post")});
  ASSERT_EQ(cells.size(), 4u);
  EXPECT_EQ(ChoicesLabel(cells[0]), "heads=1 norm=pre");
  EXPECT_EQ(ChoicesLabel(cells[1]), "heads=1 norm=post");
  EXPECT_EQ(ChoicesLabel(cells[3]), "heads=8 norm=post");
  EXPECT_EQ(CellName(cells[3], 7), "heads-8_norm-post_seed-7");
}

TEST(Grid, NoVariationIsOneCell) {
  ASSERT_EQ(ExpandGrid({}).size(), 1u);
  EXPECT_EQ(ChoicesLabel({}), "all defaults");
  EXPECT_EQ(CellName({}, 1), "seed-1");
}

TEST(Grid, CellNamesStayWithinTheFolder) {
  EXPECT_EQ(CellName({{"data", "../../etc/x y"}}, 1), "data-..-..-etc-x-y_seed-1");
}

TEST(Grid, RefusesWhatMakesNoSense) {
  for (const char* text : {"heads", "=1", "heads=", "heads=1,,2", "heads=1,1", ""}) {
    EXPECT_THROW(ParseVariation(text), Error) << text;
  }
  EXPECT_THROW(ExpandGrid({ParseVariation("a=1"), ParseVariation("a=2")}), Error);
}

}  // namespace
}  // namespace headlight
