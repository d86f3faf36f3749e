#include "headlight/io/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headlight/base/error.h"

namespace headlight {
namespace {

using testing::HasSubstr;
using testing::Pointee;

std::string MessageOf(std::string_view bytes) {
  JsonlReader reader(bytes, "f.jsonl");
  JsonlRecord record;
  try {
    while (reader.Next(&record)) {
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

TEST(JsonlTest, ScalarsBecomeText) {
  JsonlReader reader(
      "\xEF\xBB\xBF{\"a\":\"x\\ny\\u4e2d\",\"b\":-3,\"c\":1.50,\"d\":true,\"e\":null,"
      "\"f\":[1,{\"a\":2}],\"g\":{\"a\":\"inner\"},\"h\":4}\r\n",
      "f");
  JsonlRecord record;
  ASSERT_TRUE(reader.Next(&record));
  EXPECT_THAT(record.Find("a"), Pointee(std::string("x\ny中")));
  EXPECT_THAT(record.Find("b"), Pointee(std::string("-3")));
  EXPECT_THAT(record.Find("c"), Pointee(std::string("1.50")));
  EXPECT_THAT(record.Find("d"), Pointee(std::string("true")));
  EXPECT_EQ(record.Find("e"), nullptr);
  EXPECT_EQ(record.Find("f"), nullptr);
  EXPECT_EQ(record.Find("g"), nullptr);
  EXPECT_THAT(record.Find("h"), Pointee(std::string("4")));
  EXPECT_EQ(record.fields.size(), 5u);
  EXPECT_FALSE(reader.Next(&record));
}

TEST(JsonlTest, LinesAreCountedAndEmptyOnesSkipped) {
  JsonlReader reader("\n{\"a\":1}\n  \r\n{\"a\":2,\"a\":3}", "f");
  JsonlRecord record;
  ASSERT_TRUE(reader.Next(&record));
  EXPECT_EQ(record.line, 2);
  ASSERT_TRUE(reader.Next(&record));
  EXPECT_EQ(record.line, 4);
  EXPECT_THAT(record.Find("a"), Pointee(std::string("3")));
  EXPECT_FALSE(reader.Next(&record));
}

TEST(JsonlTest, ErrorsNameFileAndLine) {
  EXPECT_THAT(MessageOf("{\"a\":1}\n{\"a\":\n"), HasSubstr("f.jsonl:2: column"));
  EXPECT_EQ(MessageOf("{\"a\":1}\n{\"a\":\"b\""),
            "jsonl: f.jsonl:2: column 9: the line ends before its object does");
  EXPECT_EQ(MessageOf("{\"a\":1 \"b\"}\n"), "jsonl: f.jsonl:1: column 10: this is not JSON");
  EXPECT_THAT(MessageOf("{\"a\":1} x\n"), HasSubstr("f.jsonl:1:"));
  EXPECT_THAT(MessageOf("{\"a\":\"\xFF\"}\n"), HasSubstr("f.jsonl:1:"));
  EXPECT_THAT(MessageOf("{\"a\":\"\\ud800\"}\n"), HasSubstr("f.jsonl:1:"));
  EXPECT_THAT(MessageOf("{\"a\":1e999}\n"), HasSubstr("f.jsonl:1:"));
  for (const char* line : {"[1]", "3", "\"x\"", "null", "true", "1.5", "[{\"a\":1}]"}) {
    EXPECT_THAT(MessageOf(line), HasSubstr("f.jsonl:1: a line must be one object")) << line;
  }
}

TEST(JsonlTest, DepthIsHarmless) {
  const std::string deep(1'000'000, '[');
  EXPECT_THAT(MessageOf("{\"a\":" + deep + "}"), HasSubstr("f.jsonl:1:"));
  const std::string whole = "{\"a\":" + deep + std::string(deep.size(), ']') + ",\"b\":1}";
  JsonlReader reader(whole, "f");
  JsonlRecord record;
  ASSERT_TRUE(reader.Next(&record));
  EXPECT_THAT(record.Find("b"), Pointee(std::string("1")));
}

}  // namespace
}  // namespace headlight
