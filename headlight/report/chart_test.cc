#include "headlight/report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "headlight/base/error.h"
#include "headlight/report/axis.h"
#include "headlight/report/picture_test_support.h"

namespace headlight {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Axis, StepsAreRound) {
  const Axis axis = LinearAxis({0.12, 0.68}, {.ticks = 6});
  EXPECT_THAT(axis.labels, ElementsAre("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"));
  EXPECT_THAT(LinearAxis({0.5, 1.0}, {.ticks = 5, .percent = true}).labels,
              ElementsAre("50 %", "60 %", "70 %", "80 %", "90 %", "100 %"));
  EXPECT_THAT(LinearAxis({0, 120000}, {.ticks = 4}).labels,
              ElementsAre("0", "50k", "100k", "150k"));
  EXPECT_EQ(LinearAxis({3, 7}, {.from_zero = true}).low, 0);
}

TEST(Axis, SurvivesWhatDataCanBe) {
  for (const std::vector<double>& values : std::vector<std::vector<double>>{{},
                                                                            {NAN, INFINITY},
                                                                            {0},
                                                                            {5, 5},
                                                                            {-3, -3},
                                                                            {1e-300, 2e-300},
                                                                            {-1e300, 1e300},
                                                                            {1e16, 1e16 + 2},
                                                                            {1.7e308, -1.7e308}}) {
    const Axis axis = LinearAxis(values, {});
    EXPECT_LT(axis.low, axis.high);
    EXPECT_LT(axis.ticks.size(), 30u);
    EXPECT_GE(axis.ticks.size(), 1u);
  }
}

TEST(Axis, Log2StandsAtTheValues) {
  const Axis axis = Log2Axis({8, 1, 2, 2, 4, 0, -1, NAN});
  EXPECT_THAT(axis.labels, ElementsAre("1", "2", "4", "8"));
  EXPECT_DOUBLE_EQ(axis.Share(1), 1.5 / 4);
}

TEST(Axis, TickLabels) {
  EXPECT_EQ(TickLabel(0, 0.1), "0");
  EXPECT_EQ(TickLabel(2500000, 500000), "2.5M");
  EXPECT_EQ(TickLabel(0.00002, 0.00001), "2e-05");
  EXPECT_EQ(TickLabel(-0.25, 0.05), "-0.25");
}

LineChart Accuracy() {
  LineChart chart;
  chart.title = "accuracy <of> 头";
  chart.x_label = "heads";
  chart.y_label = "accuracy";
  chart.x_scale = XScale::kLog2;
  chart.marks = Marks::kLineAndPoints;
  chart.y_percent = true;
  chart.series = {
      {"post", {1, 2, 4, 8}, {0.8, 0.85, NAN, 0.9}, {0.7, 0.8, NAN, 0.9}, {0.9, 0.9, NAN, 0.9}},
      {"pre", {1, 8}, {0.6, 0.7}, {}, {}}};
  return chart;
}

TEST(Chart, SameBytesTwice) {
  for (const PictureFormat format :
       {PictureFormat::kPng, PictureFormat::kSvg, PictureFormat::kPdf}) {
    EXPECT_EQ(DrawLineChart(Accuracy(), format), DrawLineChart(Accuracy(), format));
  }
}

TEST(Chart, PngHasTheSizeAskedFor) {
  const std::string png = DrawLineChart(Accuracy(), PictureFormat::kPng);
  ASSERT_TRUE(IsPng(png));
  EXPECT_EQ(PngWidth(png), 2 * 760u);
  EXPECT_EQ(PngHeight(png), 2 * 420u);
}

TEST(Chart, SvgSaysItsValues) {
  const std::string svg = DrawLineChart(Accuracy(), PictureFormat::kSvg);
  EXPECT_THAT(svg, HasSubstr("<title>accuracy &lt;of&gt; 头</title>"));
  EXPECT_THAT(svg, HasSubstr("post: (1, 0.8) (2, 0.85) (4, nan) (8, 0.9)."));
}

TEST(Chart, ALongLegendMakesRoom) {
  LineChart chart;
  for (int i = 0; i < 60; ++i) chart.series.push_back({"cell", {0, 1}, {0, 1}, {}, {}, -1});
  EXPECT_GT(PngHeight(DrawLineChart(chart, PictureFormat::kPng)), 2 * 900u);
  for (ChartSeries& series : chart.series) series.style = 3;  // one entry for all
  EXPECT_EQ(PngHeight(DrawLineChart(chart, PictureFormat::kPng)), 2 * 420u);
}

TEST(Chart, EmptyOnesAreDrawn) {
  EXPECT_TRUE(IsPng(DrawLineChart({}, PictureFormat::kPng)));
  EXPECT_TRUE(IsPng(DrawBarChart({}, PictureFormat::kPng)));
  BarChart bars;
  bars.categories = {"1", "8"};
  bars.series = {{"time", {NAN, -2}}};
  EXPECT_TRUE(IsPng(DrawBarChart(bars, PictureFormat::kPng)));
}

TEST(Chart, RefusesLengthsThatDoNotFit) {
  LineChart chart;
  chart.series = {{"a", {1, 2}, {1}, {}, {}}};
  EXPECT_THROW(DrawLineChart(chart, PictureFormat::kPng), Error);
  chart.series = {{"a", {1}, {1}, {0.5}, {}}};
  EXPECT_THROW(DrawLineChart(chart, PictureFormat::kPng), Error);
  BarChart bars;
  bars.categories = {"1"};
  bars.series = {{"a", {1, 2}}};
  EXPECT_THROW(DrawBarChart(bars, PictureFormat::kPng), Error);
}

}  // namespace
}  // namespace headlight
