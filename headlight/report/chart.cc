#include "headlight/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "headlight/base/error.h"
#include "headlight/report/axis.h"
#include "headlight/report/canvas.h"

namespace headlight {
namespace {

// Okabe and Ito (2008), "Color Universal Design"; the yellow, too light for lines on white, is left
// out, black comes last.
constexpr std::array<Colour, 7> kPalette{{{0.000, 0.447, 0.698},
                                          {0.835, 0.369, 0.000},
                                          {0.000, 0.620, 0.451},
                                          {0.800, 0.475, 0.655},
                                          {0.902, 0.624, 0.000},
                                          {0.337, 0.706, 0.914},
                                          {0.150, 0.150, 0.150}}};
constexpr std::array<Marker, 6> kMarkers{Marker::kCircle,  Marker::kSquare,       Marker::kTriangle,
                                         Marker::kDiamond, Marker::kDownTriangle, Marker::kCross};

const TextStyle kTitle{13, true, kInk};
const TextStyle kLabel{11, false, kInk};
const TextStyle kTick{10, false, kFaintInk};
const TextStyle kLegend{10, false, kInk};
constexpr double kMargin = 14;
constexpr double kLegendLine = 16;
constexpr double kMaxLegend = 220;

struct Style {
  Colour colour;
  Marker marker = Marker::kCircle;
  std::vector<double> dashes;
};

// The first seven differ by colour, the next by dash too.
Style StyleOf(size_t index) {
  static const std::array<std::vector<double>, 4> kDashes{{{}, {6, 3}, {2, 2.5}, {8, 3, 2, 3}}};
  return {kPalette[index % kPalette.size()], kMarkers[index % kMarkers.size()],
          kDashes[index / kPalette.size() % kDashes.size()]};
}

struct LegendEntry {
  std::string name;
  Style style;
};

struct FrameText {
  std::string title;
  std::string x_label;
  std::string y_label;
};

// The frame of every chart: title, axes, grid, legend at the right. Plot() is what is left for
// data.
class Frame {
 public:
  Frame(FrameText text, Axis x, Axis y, std::vector<LegendEntry> legend, PictureSize size)
      : text_(std::move(text)),
        x_(std::move(x)),
        y_(std::move(y)),
        legend_(std::move(legend)),
        size_(size) {}

  PictureSize Layout(Canvas& canvas) {
    double ticks = 0;
    for (const std::string& label : y_.labels) {
      ticks = std::max(ticks, canvas.TextWidth(label, kTick));
    }
    double legend = 0;
    for (LegendEntry& entry : legend_) {
      entry.name = canvas.Shorten(entry.name, kLegend, kMaxLegend);
      legend = std::max(legend, canvas.TextWidth(entry.name, kLegend));
    }
    const bool has_legend = legend_.size() > 1;
    if (has_legend) {  // a long legend makes the picture higher
      const double needed = static_cast<double>(legend_.size()) * kLegendLine + 110;
      size_.height = std::max(size_.height, needed);
    }
    plot_.x = kMargin + 20 + ticks + 8;
    plot_.y = kMargin + 26;
    plot_.width = size_.width - plot_.x - (has_legend ? legend + 34 + 2 * kMargin : kMargin + 12);
    ThinOut(canvas);
    plot_.height = size_.height - plot_.y - kMargin - 20 - x_depth_;
    return size_;
  }

  const Rectangle& plot() const { return plot_; }
  double X(double share) const { return plot_.x + share * plot_.width; }
  double Y(double value) const { return plot_.y + (1 - y_.Share(value)) * plot_.height; }
  const Axis& x() const { return x_; }
  const Axis& y() const { return y_; }

  void Draw(Canvas& canvas) {
    canvas.Text({plot_.x, kMargin + 6}, canvas.Shorten(text_.title, kTitle, size_.width - plot_.x),
                kTitle, Anchor::kStart);
    for (size_t i = 0; i < y_.ticks.size(); ++i) {
      const double y = Y(y_.ticks[i]);
      canvas.Line({{plot_.x, y}, {plot_.x + plot_.width, y}}, {kGrid, 0.8, {}});
      canvas.Text({plot_.x - 7, y}, y_.labels[i], kTick, Anchor::kEnd);
    }
    const double foot = plot_.y + plot_.height;
    canvas.Line({{plot_.x, foot}, {plot_.x + plot_.width, foot}}, {kFaintInk, 1, {}});
    for (size_t i = 0; i < x_.ticks.size(); i += every_) {
      const double x = X(x_.Share(x_.ticks[i]));
      canvas.Line({{x, foot}, {x, foot + 4}}, {kFaintInk, 1, {}});
      if (slanted_) {
        canvas.Text({x + 3, foot + 11}, x_.labels[i], kTick, Anchor::kEnd, -35);
      } else {
        canvas.Text({x, foot + 13}, x_.labels[i], kTick, Anchor::kMiddle);
      }
    }
    canvas.Text({plot_.x + plot_.width / 2, size_.height - kMargin - 4}, text_.x_label, kLabel,
                Anchor::kMiddle);
    canvas.Text({kMargin + 4, plot_.y + plot_.height / 2},
                canvas.Shorten(text_.y_label, kLabel, plot_.height + 40), kLabel, Anchor::kMiddle,
                -90);
  }

  // `mark` draws a sample of an entry around a point.
  template <typename Function>
  void DrawLegend(Canvas& canvas, const Function& mark) {
    if (legend_.size() < 2) return;
    const double x = plot_.x + plot_.width + 16;
    for (size_t i = 0; i < legend_.size(); ++i) {
      const double y = plot_.y + 6 + static_cast<double>(i) * kLegendLine;
      mark(Point{x + 10, y}, legend_[i].style);
      canvas.Text({x + 26, y}, legend_[i].name, kLegend, Anchor::kStart);
    }
  }

 private:
  // Labels of the x axis that would touch are turned; if that does not help, every so-manieth
  // stays.
  void ThinOut(Canvas& canvas) {
    const double room = plot_.width / std::max<double>(1, static_cast<double>(x_.ticks.size()));
    // A turned label reaches to the left, and must not leave the picture.
    const double longest = std::clamp((plot_.x + room / 2) / 0.82 - 6, 40.0, 180.0);
    double widest = 0;
    for (std::string& label : x_.labels) {
      label = canvas.Shorten(label, kTick, longest);
      widest = std::max(widest, canvas.TextWidth(label, kTick));
    }
    slanted_ = widest + 6 > room && widest > 24;
    x_depth_ = slanted_ ? 16 + widest * 0.58 : 20;
    const double needed = slanted_ ? 16 : widest + 8;
    every_ = static_cast<size_t>(std::max(1.0, std::ceil(needed / std::max(room, 0.1))));
  }

  FrameText text_;
  Axis x_;
  Axis y_;
  std::vector<LegendEntry> legend_;
  PictureSize size_;
  Rectangle plot_;
  double x_depth_ = 20;
  bool slanted_ = false;
  size_t every_ = 1;
};

void NoData(Canvas& canvas, const Rectangle& plot) {
  canvas.Text({plot.x + plot.width / 2, plot.y + plot.height / 2}, "no data",
              {12, false, kFaintInk}, Anchor::kMiddle);
}

// What a picture says, for those who do not see it: name and values of each series.
std::string Words(const FrameText& text) {
  return fmt::format("{}: {} against {}.", text.title, text.y_label, text.x_label);
}

class LinePainter {
 public:
  explicit LinePainter(const LineChart& chart) : chart_(chart) {
    std::map<int, size_t> styles;
    for (const ChartSeries& series : chart.series) {
      Check(series);
      const bool own = series.style < 0 || styles.count(series.style) == 0;
      const size_t index = own ? legend_.size() : styles[series.style];
      if (own) legend_.push_back({series.name, StyleOf(index)});
      if (own && series.style >= 0) styles[series.style] = index;
      style_of_.push_back(index);
    }
  }

  FrameText text() const { return {chart_.title, chart_.x_label, chart_.y_label}; }

  std::string Description() const {
    std::string words = Words(text());
    for (const ChartSeries& series : chart_.series) {
      words += fmt::format(" {}:", series.name);
      const size_t shown = std::min<size_t>(series.x.size(), 64);
      for (size_t i = 0; i < shown; ++i) {
        words += fmt::format(" ({:.6g}, {:.6g})", series.x[i], series.y[i]);
      }
      words += ".";
    }
    return words;
  }

  Frame MakeFrame() {
    std::vector<double> xs, ys;
    for (const ChartSeries& series : chart_.series) {
      for (size_t i = 0; i < series.x.size(); ++i) {
        if (!std::isfinite(series.y[i]) || !std::isfinite(series.x[i])) continue;
        xs.push_back(series.x[i]);
        ys.push_back(series.y[i]);
        if (!series.low.empty()) ys.insert(ys.end(), {series.low[i], series.high[i]});
      }
    }
    empty_ = xs.empty();
    const Axis x =
        chart_.x_scale == XScale::kLog2
            ? Log2Axis(xs)
            : LinearAxis(xs,
                         {.ticks = 8, .from_zero = false, .percent = false, .whole_range = false});
    const Axis y = LinearAxis(ys, {.ticks = 6,
                                   .from_zero = chart_.y_from_zero,
                                   .percent = chart_.y_percent,
                                   .whole_range = true});
    return {text(), x, y, legend_, {chart_.width, chart_.height}};
  }

  void Draw(Canvas& canvas, Frame& frame) {
    frame.Draw(canvas);
    if (empty_) NoData(canvas, frame.plot());
    for (size_t i = 0; i < chart_.series.size(); ++i) DrawSeries(canvas, frame, i);
    frame.DrawLegend(canvas, [&](Point at, const Style& style) {
      if (chart_.marks != Marks::kPoints) {
        canvas.Line({{at.x - 10, at.y}, {at.x + 10, at.y}}, {style.colour, 1.8, style.dashes});
      }
      if (chart_.marks != Marks::kLine) canvas.Mark(at, style.marker, 7, style.colour);
    });
  }

 private:
  static void Check(const ChartSeries& series) {
    const bool bars = !series.low.empty() || !series.high.empty();
    if (series.x.size() != series.y.size() ||
        (bars && (series.low.size() != series.x.size() || series.high.size() != series.x.size()))) {
      throw Error(ErrorKind::kInternal, "chart: series \"{}\" must have as many y as x",
                  series.name);
    }
  }

  double Place(double x) const { return chart_.x_scale == XScale::kLog2 ? std::log2(x) : x; }

  void DrawSeries(Canvas& canvas, Frame& frame, size_t index) {
    const ChartSeries& series = chart_.series[index];
    const Style& style = legend_[style_of_[index]].style;
    // Points of several series at one x stand side by side, so that their error bars are told
    // apart.
    const double middle = (static_cast<double>(chart_.series.size()) - 1) / 2;
    const double aside = series.low.empty() ? 0 : (static_cast<double>(index) - middle) * 7;
    std::vector<Point> line;
    std::vector<Point> points;
    const auto flush = [&] {
      if (chart_.marks != Marks::kPoints) canvas.Line(line, {style.colour, 1.8, style.dashes});
      // A value alone between gaps would be invisible as a line.
      if (line.size() == 1 && chart_.marks == Marks::kLine) points.push_back(line[0]);
      line.clear();
    };
    for (size_t i = 0; i < series.x.size(); ++i) {
      const bool placed = chart_.x_scale == XScale::kLinear || series.x[i] > 0;
      if (!placed || !std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) {
        flush();
        continue;
      }
      const Point at{frame.X(frame.x().Share(Place(series.x[i]))) + aside, frame.Y(series.y[i])};
      line.push_back(at);
      if (chart_.marks != Marks::kLine) points.push_back(at);
      if (series.low.empty()) continue;
      if (!std::isfinite(series.low[i]) || !std::isfinite(series.high[i])) continue;
      const double low = frame.Y(series.low[i]), high = frame.Y(series.high[i]);
      const LineStyle bar{style.colour, 1.3, {}};
      canvas.Line({{at.x, low}, {at.x, high}}, bar);
      canvas.Line({{at.x - 4, low}, {at.x + 4, low}}, bar);
      canvas.Line({{at.x - 4, high}, {at.x + 4, high}}, bar);
    }
    flush();
    for (const Point& at : points) canvas.Mark(at, style.marker, 7, style.colour);
  }

  const LineChart& chart_;
  std::vector<LegendEntry> legend_;
  std::vector<size_t> style_of_;
  bool empty_ = false;
};

class BarPainter {
 public:
  explicit BarPainter(const BarChart& chart) : chart_(chart) {
    for (const BarSeries& series : chart.series) {
      if (series.values.size() != chart.categories.size()) {
        throw Error(ErrorKind::kInternal, "chart: bars \"{}\" must have {} values, found {}",
                    series.name, chart.categories.size(), series.values.size());
      }
      legend_.push_back({series.name, StyleOf(legend_.size())});
    }
  }

  FrameText text() const { return {chart_.title, chart_.x_label, chart_.y_label}; }

  std::string Description() const {
    std::string words = Words(text());
    for (const BarSeries& series : chart_.series) {
      words += fmt::format(" {}:", series.name);
      for (size_t i = 0; i < series.values.size(); ++i) {
        words += fmt::format(" {} {:.6g}", chart_.categories[i], series.values[i]);
      }
      words += ".";
    }
    return words;
  }

  Frame MakeFrame() {
    std::vector<double> values;
    for (const BarSeries& series : chart_.series) {
      for (const double value : series.values) {
        if (std::isfinite(value)) values.push_back(value * 1.06);  // room for the bar's label
      }
    }
    empty_ = values.empty();
    Axis x;
    x.high = std::max<double>(1, static_cast<double>(chart_.categories.size()));
    for (size_t i = 0; i < chart_.categories.size(); ++i) {
      x.ticks.push_back(static_cast<double>(i) + 0.5);
      x.labels.push_back(chart_.categories[i]);
    }
    const Axis y =
        LinearAxis(values, {.ticks = 6, .from_zero = true, .percent = false, .whole_range = true});
    return {text(), x, y, legend_, {chart_.width, chart_.height}};
  }

  void Draw(Canvas& canvas, Frame& frame) {
    frame.Draw(canvas);
    if (empty_) NoData(canvas, frame.plot());
    const double group = frame.plot().width / frame.x().high;
    const double room = std::min(group * 0.78, 90.0 * static_cast<double>(chart_.series.size()));
    const double width = room / std::max<double>(1, static_cast<double>(chart_.series.size()));
    for (size_t s = 0; s < chart_.series.size(); ++s) {
      for (size_t i = 0; i < chart_.categories.size(); ++i) {
        const double value = chart_.series[s].values[i];
        if (!std::isfinite(value)) continue;
        const double left = frame.X(frame.x().Share(static_cast<double>(i) + 0.5)) - room / 2 +
                            static_cast<double>(s) * width;
        const double top = frame.Y(std::max(value, 0.0)), foot = frame.Y(std::min(value, 0.0));
        canvas.Fill({{left + 0.5, top, std::max(width - 1, 0.5), foot - top}},
                    legend_[s].style.colour);
        LabelBar(canvas, {left + width / 2, top - 8}, value, width);
      }
    }
    frame.DrawLegend(canvas, [&](Point at, const Style& style) {
      canvas.Fill({{at.x - 8, at.y - 5, 14, 10}}, style.colour);
    });
  }

 private:
  // The value over its bar where there is room.
  void LabelBar(Canvas& canvas, Point at, double value, double width) {
    const TextStyle small{9, false, kFaintInk};
    const double size = std::max(std::abs(value), 1e-9);
    const double digits = std::pow(10, std::floor(std::log10(size)) - 2);  // three of them
    const std::string label = TickLabel(value, size < 1e4 ? std::min(digits, 1.0) : digits);
    if (canvas.TextWidth(label, small) <= width) canvas.Text(at, label, small, Anchor::kMiddle);
  }

  const BarChart& chart_;
  std::vector<LegendEntry> legend_;
  bool empty_ = false;
};

template <typename Painter>
std::string Render(Painter painter, PictureFormat format) {
  Frame frame = painter.MakeFrame();
  return RenderPicture(
      format, painter.text().title, painter.Description(),
      [&](Canvas& canvas) { return frame.Layout(canvas); },
      [&](Canvas& canvas) { painter.Draw(canvas, frame); });
}

}  // namespace

std::string DrawLineChart(const LineChart& chart, PictureFormat format) {
  return Render(LinePainter(chart), format);
}

std::string DrawBarChart(const BarChart& chart, PictureFormat format) {
  return Render(BarPainter(chart), format);
}

}  // namespace headlight
