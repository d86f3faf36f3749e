#include "headlight/report/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "headlight/base/error.h"

namespace headlight {
namespace {

using testing::HasSubstr;
using testing::Not;

Table Sample() {
  Table table({{"heads", "heads"},
               {"norm", "norm", Align::kLeft},
               {"accuracy", "accuracy"},
               {"low", "low", Align::kRight, Audience::kMachines},
               {"all", "memory_all", Align::kRight, Audience::kBoth, "peak memory, MiB"}});
  table.AddRow(
      {1, "post", Cell::Text("93.1 ± 0.4 %", 0.931), Cell::Real(0.927, 3), Cell::Real(1234.5, 1)});
  table.AddRow({8, "词袋", Cell::Percent(0.5, 1), Cell(), Cell::Real(NAN, 1)});
  table.StartGroup("baseline");
  table.AddRow({Cell(), "a|b, \"c\"\n<i>", Cell::Percent(1, 0), Cell(), Cell(1234567)});
  return table;
}

TEST(Table, Text) {
  EXPECT_EQ(TableAsText(Sample()),
            "                                   peak memory, MiB\n"
            "heads  norm              accuracy               all\n"
            "─────  ────────────  ────────────  ────────────────\n"
            "    1  post          93.1 ± 0.4 %            1234.5\n"
            "    8  词袋                50.0 %               nan\n"
            "\n"
            "baseline\n"
            "       a|b, \"c\"␊<i>         100 %         1,234,567\n");
}

TEST(Table, AnsiOnlyWhenAsked) {
  EXPECT_THAT(TableAsText(Sample()), Not(HasSubstr("\x1b")));
  EXPECT_THAT(TableAsText(Sample(), {.ansi = true}), HasSubstr("\x1b[1mheads"));
  EXPECT_THAT(TableAsText(Sample(), {.ansi = false, .indent = 2}), HasSubstr("\n  heads"));
}

TEST(Table, Markdown) {
  const std::string text = TableAsMarkdown(Sample());
  EXPECT_THAT(text, HasSubstr("heads | norm "));
  EXPECT_THAT(text, HasSubstr("peak memory, MiB: all |"));
  EXPECT_THAT(text, HasSubstr("a\\|b, \"c\" \\<i>"));
  EXPECT_THAT(text, Not(HasSubstr("low")));
  size_t columns = 0;  // unescaped bars of the first line, to be met by every line
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    size_t bars = 0;
    for (size_t i = 0; i < line.size(); ++i)
      bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    if (columns == 0) columns = bars;
    EXPECT_EQ(bars, columns) << line;
    begin = end + 1;
  }
}

TEST(Table, Csv) {
  EXPECT_EQ(TableAsCsv(Sample()),
            "heads,norm,accuracy,low,memory_all\r\n"
            "1,post,0.931,0.927,1234.5\r\n"
            "8,词袋,0.5,,nan\r\n"
            ",\"a|b, \"\"c\"\"\n<i>\",1,,1234567\r\n");
}

TEST(Table, JsonParsesAndKeepsNumbers) {
  const nlohmann::json rows = nlohmann::json::parse(TableAsJson(Sample()));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["heads"], 1);
  EXPECT_EQ(rows[0]["accuracy"], 0.931);
  EXPECT_EQ(rows[0]["low"], 0.927);
  EXPECT_TRUE(rows[1]["memory_all"].is_null());
  EXPECT_EQ(rows[2]["norm"], "a|b, \"c\"\n<i>");
  EXPECT_EQ(TableAsJson(Table({{"a"}})), "[]");
}

TEST(Table, HtmlEscapes) {
  const std::string html = TableAsHtml(Sample());
  EXPECT_THAT(html, HasSubstr("a|b, &quot;c&quot;\n&lt;i&gt;"));
  EXPECT_THAT(html, HasSubstr("<th class=\"group\" colspan=\"1\">peak memory, MiB</th>"));
}

TEST(Table, RefusesRowsThatDoNotFit) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.AddRow({1}), Error);
}

TEST(Table, Numbers) {
  EXPECT_EQ(Cell(0).text, "0");
  EXPECT_EQ(Cell(999).text, "999");
  EXPECT_EQ(Cell(-1000).text, "-1,000");
  EXPECT_EQ(Cell(int64_t{1234567890}).text, "1,234,567,890");
  EXPECT_EQ(Cell::Real(INFINITY, 2).text, "inf");
  EXPECT_EQ(Cell::Percent(0.9314, 1).text, "93.1 %");
}

}  // namespace
}  // namespace headlight
