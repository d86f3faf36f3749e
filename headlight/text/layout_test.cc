#include "headlight/text/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headlight/base/error.h"

namespace headlight {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "index:label:part" of each planned file.
std::vector<std::string> Plan(const std::vector<std::string>& paths) {
  const char* const parts[] = {"-", "train", "valid", "test"};
  std::vector<std::string> planned;
  for (const LayoutFile& file : PlanLayout(paths, "D").files) {
    planned.push_back(std::to_string(file.index) + ":" + file.label + ":" +
                      parts[static_cast<int>(file.part)]);
  }
  return planned;
}

TEST(LayoutTest, ClassFolders) {
  EXPECT_THAT(Plan({"neg/1.txt", "pos/2.txt", "README"}), ElementsAre("0:neg:-", "1:pos:-"));
  EXPECT_THAT(Plan({"imdb/README", "imdb/train/neg/1.txt", "imdb/valid/pos/2.txt"}),
              ElementsAre("1:neg:train", "2:pos:valid"));
  EXPECT_THAT(Plan({"x/dev/a/1", "x/Test/a/1", "x/train/unsup/1", "x/train/a/.DS_Store"}),
              ElementsAre("0:a:valid", "1:a:test"));
  EXPECT_THAT(Plan({"__MACOSX/a/1", "a/1", "b/1"}), ElementsAre("1:a:-", "2:b:-"));
}

TEST(LayoutTest, DataFilesByPart) {
  EXPECT_THAT(Plan({"LICENSE", "dev.tsv", "train.tsv"}), ElementsAre("1::valid", "2::train"));
  EXPECT_THAT(Plan({"README.md", "stsa.binary.dev", "stsa.binary.train"}),
              ElementsAre("1::valid", "2::train"));
  EXPECT_THAT(Plan({"set/train.csv", "set/test.csv"}), ElementsAre("0::train", "1::test"));
  EXPECT_THAT(Plan({"LICENSE", "reviews.csv"}), ElementsAre("1::-"));
  EXPECT_THAT(Plan({"set/reviews.csv"}), ElementsAre("0::-"));
}

TEST(LayoutTest, Errors) {
  const auto message = [](const std::vector<std::string>& paths) -> std::string {
    try {
      PlanLayout(paths, "D");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message({}), HasSubstr("D holds neither class folders"));
  EXPECT_THAT(message({"a.md", "b.md"}), HasSubstr("D holds neither class folders"));
  EXPECT_THAT(message({"a.csv", "b.csv"}), HasSubstr("D holds neither class folders"));
  EXPECT_THAT(message({"train/a/1", "b/1"}), HasSubstr("but 'b/1' does not"));
}

}  // namespace
}  // namespace headlight
