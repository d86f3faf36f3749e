#include "headlight/report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "headlight/base/error.h"
#include "headlight/report/chart.h"
#include "headlight/report/escape.h"
#include "headlight/report/picture_test_support.h"

namespace headlight {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile = "</script><img src=x onerror=alert(1)>";

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// What stands between an element's start tag and the next end tag of its name.
std::string Between(const std::string& html, const std::string& start, const std::string& end) {
  const size_t begin = html.find(start);
  if (begin == std::string::npos) return "";
  return html.substr(begin + start.size(), html.find(end, begin) - begin - start.size());
}

std::string Data(const std::string& html) {
  return Between(html, "<script type=\"application/json\" class=\"attention-data\">", "</script>");
}

TEST(AttentionPage, EmbedsTheDataAsJsonThatParses) {
  const AttentionPicture picture = MakePicture({"这", "只", kHostile, "<!--", "\xff\n\"\\"}, 2, 3);
  const nlohmann::json data = nlohmann::json::parse(Data(AttentionPage(picture)));
  EXPECT_EQ(data["format_version"], 1);
  EXPECT_EQ(data["tokens"][0], "这");
  EXPECT_EQ(data["tokens"][2], kHostile);
  EXPECT_EQ(data["tokens"][4], "\uFFFD\n\"\\");
  EXPECT_EQ(data["layers"], 2);
  EXPECT_EQ(data["heads"], 3);
  EXPECT_EQ(data["figures"][1][2]["role"], "neighbour");
  for (size_t i = 0; i < 25; ++i) {
    EXPECT_NEAR(data["weights"][1][2][i].get<double>(), picture.At(1, 2)[i], 1e-5);
  }
}

TEST(AttentionPage, HostileTokensStayText) {
  const std::string plain = AttentionPage(MakePicture({"a", "b"}, 1, 1));
  AttentionPicture picture = MakePicture({kHostile, "<!--<script>"}, 1, 1);
  picture.run = kHostile;
  picture.figures[0][0].role = kHostile;
  picture.prediction = {{kHostile, 0.5}};
  const std::string hostile = AttentionPage(picture);
  EXPECT_EQ(Count(hostile, "</script"), Count(plain, "</script"));
  EXPECT_EQ(Count(hostile, "<script"), Count(plain, "<script"));
  EXPECT_EQ(Count(hostile, "<img"), 0u);
  EXPECT_EQ(Count(hostile, "<!--"), 0u);
}

TEST(AttentionPage, IsOneFileAndTheSameTwice) {
  const AttentionPicture picture = MakePicture({"a", "b"}, 1, 1);
  const std::string html = AttentionPage(picture);
  EXPECT_EQ(html, AttentionPage(picture));
  EXPECT_TRUE(html.starts_with("<!doctype html>"));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  // Nothing to fetch: the only addresses are names of XML namespaces.
  for (const char* fetching : {" src=\"http", "href=\"", "@import", "url(", "import("}) {
    EXPECT_THAT(html, Not(HasSubstr(fetching)));
  }
  EXPECT_GT(html.size(), 20000u);  // the script is in it
}

TEST(AttentionPage, WeightsThatAreNotNumbersAreNull) {
  AttentionPicture picture = MakePicture({"a"}, 1, 1);
  picture.weights[0][0] = {NAN};
  EXPECT_TRUE(nlohmann::json::parse(Data(AttentionPage(picture)))["weights"][0][0][0].is_null());
}

ComparisonReport SampleReport() {
  ComparisonReport report;
  report.title = "Heads on <my> text";
  report.summary = "1, 2 & 4 heads";
  report.table = Table({{"heads"}, {"accuracy"}});
  report.table.AddRow({1, Cell::Percent(0.9, 1)});
  report.table.AddRow({kHostile, Cell::Percent(0.91, 1)});
  report.sentences = {"The difference is within the seeds' spread.", kHostile};
  BarChart chart;
  chart.title = kHostile;
  chart.categories = {kHostile};
  chart.series = {{"time", {1}}};
  report.figures = {{kHostile, kHostile, DrawBarChart(chart, PictureFormat::kSvg)}};
  report.config = "name = \"</pre><script>\"";
  report.environment = {{"CPU", kHostile}};
  report.attention = {{"own <sentence>", MakePicture({kHostile, "猫"}, 1, 2)}};
  return report;
}

TEST(ComparisonPage, HoldsEverything) {
  const ComparisonReport report = SampleReport();
  const std::string html = ComparisonPage(report);
  EXPECT_THAT(html, HasSubstr("<h1>Heads on &lt;my&gt; text</h1>"));
  EXPECT_THAT(html, HasSubstr("90.0 %"));
  EXPECT_THAT(html, HasSubstr("The difference is within the seeds&#39; spread."));
  EXPECT_THAT(html, HasSubstr("data:image/svg+xml;base64," + Base64(report.figures[0].svg)));
  EXPECT_THAT(html, HasSubstr("name = &quot;&lt;/pre&gt;&lt;script&gt;&quot;"));
  EXPECT_EQ(nlohmann::json::parse(Data(html))["tokens"][1], "猫");
  EXPECT_EQ(html, ComparisonPage(report));
}

TEST(ComparisonPage, HostileTextStaysText) {
  const std::string html = ComparisonPage(SampleReport());
  EXPECT_EQ(Count(html, "<script"), 2u);  // the data and the page's own
  EXPECT_EQ(Count(html, "</script"), 2u);
  EXPECT_EQ(Count(html, "<img"), 1u);  // the chart
  EXPECT_EQ(Count(html, "onerror=\""), 0u);
}

TEST(AttentionFiles, CsvAndJsonHaveAllDigits) {
  AttentionPicture picture = MakePicture({"a,b", "猫"}, 1, 2);
  picture.weights[0][1] = {0.1f, 0.9f, 0.33333334f, 0.6666667f};
  const std::string csv = AttentionAsCsv(picture);
  EXPECT_TRUE(csv.starts_with("layer,head,query,key,query_token,key_token,weight\r\n"));
  EXPECT_THAT(csv, HasSubstr("0,1,1,0,猫,\"a,b\",0.33333334\r\n"));
  const nlohmann::json data = nlohmann::json::parse(AttentionAsJson(picture));
  EXPECT_EQ(data["weights"][0][1][2].get<float>(), 0.33333334f);
}

TEST(AttentionFiles, ChosenHeadsKeepTheirNumbers) {
  AttentionPicture picture = MakePicture({"a", "b"}, 3, 2);
  picture.weights[2][1] = {0.25f, 0.75f, 0.5f, 0.5f};
  const HeadChoice one{2, 1};
  const std::string csv = AttentionAsCsv(picture, one);
  EXPECT_EQ(Count(csv, "\r\n"), 1u + 4u);
  EXPECT_THAT(csv, HasSubstr("2,1,0,1,a,b,0.75\r\n"));
  EXPECT_EQ(Count(AttentionAsCsv(picture, {-1, 1}), "\r\n"), 1u + 3u * 4u);
  const nlohmann::json data = nlohmann::json::parse(AttentionAsJson(picture, one));
  EXPECT_EQ(data["weights"].dump(), "[[[0.25,0.75,0.5,0.5]]]");
  EXPECT_EQ(data["figures"].size(), picture.figures.empty() ? 0u : 1u);
  EXPECT_EQ(data["layers"], 1);
  EXPECT_EQ(data["heads"], 1);
  EXPECT_EQ(data["first_layer"], 2);
  EXPECT_EQ(data["first_head"], 1);
  const nlohmann::json row = nlohmann::json::parse(AttentionAsJson(picture, {0, -1}));
  EXPECT_EQ(row["heads"], 2);
  EXPECT_EQ(row["weights"][0].size(), 2u);
  EXPECT_EQ(row["first_head"], 0);
}

}  // namespace
}  // namespace headlight
