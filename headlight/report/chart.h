// Charts of a comparison: learning curves, a measure against the varied choice, grouped bars.
// Colours are Okabe and Ito's (2008), told apart by people who are colour-blind too; series differ
// by marker and dash as well.
#pragma once

#include <string>
#include <vector>

#include "headlight/report/picture.h"

namespace headlight {

struct ChartSeries {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;    // a value that is not finite breaks the line
  std::vector<double> low;  // error bars from low to high; both empty for none
  std::vector<double> high;
  // Series of one style share colour, dash and one entry in the legend (the first one's name): the
  // seeds of one choice. -1: a style of its own.
  int style = -1;
};

enum class XScale {
  kLinear,
  kLog2
};  // kLog2: ticks at the x values themselves, as 1, 2, 4, 8 heads
enum class Marks { kLine, kPoints, kLineAndPoints };

struct LineChart {
  std::string title;
  std::string x_label;  // with units
  std::string y_label;
  std::vector<ChartSeries> series;
  XScale x_scale = XScale::kLinear;
  Marks marks = Marks::kLine;
  bool y_from_zero = false;
  bool y_percent = false;  // y are shares: ticks as percentages
  double width = 760;      // points
  double height = 420;
};

struct BarSeries {
  std::string name;
  std::vector<double> values;  // one a category; not finite: no bar
};

struct BarChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<std::string> categories;
  std::vector<BarSeries> series;
  double width = 760;
  double height = 420;
};

// The file's bytes. kInternal when lengths do not fit together; a chart without a finite value says
// "no data".
std::string DrawLineChart(const LineChart& chart, PictureFormat format);
std::string DrawBarChart(const BarChart& chart, PictureFormat format);

}  // namespace headlight
