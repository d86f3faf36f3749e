#include "headlight/io/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headlight/base/error.h"

namespace headlight {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Rows = std::vector<std::vector<std::string>>;

Rows ReadAll(std::string_view bytes, const CsvOptions& options = {}) {
  CsvReader reader(bytes, "f.csv", options);
  CsvRecord record;
  Rows rows;
  while (reader.Next(&record)) rows.push_back(record.fields);
  return rows;
}

std::string MessageOf(std::string_view bytes, const CsvOptions& options = {}) {
  try {
    ReadAll(bytes, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

TEST(CsvTest, FieldsAndLineEnds) {
  const Rows expected = {{"a", "b"}, {"c", ""}, {"", "d"}};
  EXPECT_EQ(ReadAll("a,b\nc,\n,d"), expected);
  EXPECT_EQ(ReadAll("a,b\r\nc,\r\n,d\r\n"), expected);
  EXPECT_EQ(ReadAll("\xEF\xBB\xBF"
                    "a,b\n\nc,\n\r\n,d\n\n"),
            expected);
  EXPECT_EQ(ReadAll(""), Rows());
  EXPECT_EQ(ReadAll("\n\r\n"), Rows());
}

TEST(CsvTest, Quotes) {
  EXPECT_EQ(ReadAll("\"a,b\",c\n"), (Rows{{"a,b", "c"}}));
  EXPECT_EQ(ReadAll("\"say \"\"hi\"\"\",c\r\n"), (Rows{{"say \"hi\"", "c"}}));
  EXPECT_EQ(ReadAll("\"two\nlines\r\nthree\",\"\"\nx,y"),
            (Rows{{"two\nlines\r\nthree", ""}, {"x", "y"}}));
  EXPECT_EQ(ReadAll("\"\""), (Rows{{""}}));
  EXPECT_EQ(ReadAll("a \"b\" c,5\" disk\n"), (Rows{{"a \"b\" c", "5\" disk"}}));
  CsvOptions literal;
  literal.quotes = false;
  EXPECT_EQ(ReadAll("\"a,b\"\n", literal), (Rows{{"\"a", "b\""}}));
}

TEST(CsvTest, LoneCarriageReturnsBelongToTheField) {
  EXPECT_EQ(ReadAll("a\rb,c\r"), (Rows{{"a\rb", "c\r"}}));
}

TEST(CsvTest, Tabs) {
  CsvOptions tabs;
  tabs.delimiter = '\t';
  EXPECT_EQ(ReadAll("a,b\t\"c\td\"\n", tabs), (Rows{{"a,b", "c\td"}}));
}

TEST(CsvTest, RecordsKnowTheirFirstLine) {
  CsvReader reader("a\n\"b\nb\"\n\nc\n", "f", {});
  CsvRecord record;
  std::vector<int64_t> lines;
  while (reader.Next(&record)) lines.push_back(record.line);
  EXPECT_THAT(lines, ElementsAre(1, 2, 5));
}

TEST(CsvTest, ErrorsNameFileAndLine) {
  EXPECT_THAT(MessageOf("a,b\nc,\"d\ne\n"), HasSubstr("f.csv:2: the quote that opens here"));
  EXPECT_THAT(MessageOf("a,b\n\"c\n\"d,e\n"), HasSubstr("f.csv:3: a closing quote must end"));
  EXPECT_THAT(MessageOf("\"a\"\rb\n"), HasSubstr("f.csv:1: a closing quote must end"));
  CsvOptions few;
  few.max_fields = 2;
  EXPECT_EQ(ReadAll("a,b\n", few).size(), 1u);
  EXPECT_THAT(MessageOf("a,b\n1,2,3\n", few), HasSubstr("f.csv:2: a record may have at most 2"));
}

TEST(CsvTest, WrittenFieldsReadBack) {
  const std::vector<std::string> fields = {"plain", "a,b", "say \"hi\"", "two\nlines",
                                           "cr\r",  "",    " space "};
  std::string bytes;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) bytes.push_back(',');
    AppendCsvField(fields[i], ',', &bytes);
  }
  EXPECT_EQ(ReadAll(bytes + "\n"), (Rows{fields}));
}

}  // namespace
}  // namespace headlight
