// Drawing for all formats by one code: cairo draws, pango sets the text (Chinese too). Lengths are
// points, y goes down. Internal to report/.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/report/picture.h"

namespace headlight {

struct Colour {
  double red = 0;
  double green = 0;
  double blue = 0;
};
inline constexpr Colour kInk{0.13, 0.15, 0.19};
inline constexpr Colour kFaintInk{0.42, 0.45, 0.50};
inline constexpr Colour kGrid{0.87, 0.88, 0.90};
inline constexpr Colour kPaper{1, 1, 1};

struct Point {
  double x = 0;
  double y = 0;
};
struct Rectangle {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

struct TextStyle {
  double size = 10;
  bool bold = false;
  Colour colour = kInk;
};
// Which point of the text lies at the given place; vertically always the middle of the line.
enum class Anchor { kStart, kMiddle, kEnd };

struct LineStyle {
  Colour colour = kInk;
  double width = 1;
  std::vector<double> dashes;  // lengths on, off, ...; empty: solid
};

enum class Marker { kCircle, kSquare, kTriangle, kDiamond, kDownTriangle, kCross };

// Measures and draws. One line of text; what would act on a terminal is shown as Printable shows
// it.
class Canvas {
 public:
  class Pen;
  explicit Canvas(Pen& pen) : pen_(pen) {}

  double TextWidth(std::string_view text, const TextStyle& style);
  // The longest beginning with an ellipsis that is at most `width` wide.
  std::string Shorten(std::string_view text, const TextStyle& style, double width);

  // `degrees` turns the text about its anchor, clockwise.
  void Text(Point at, std::string_view text, const TextStyle& style, Anchor anchor,
            double degrees = 0);
  void Fill(const std::vector<Rectangle>& rectangles, const Colour& colour);
  void Outline(const Rectangle& rectangle, const LineStyle& style);
  void Line(const std::vector<Point>& points, const LineStyle& style);
  void Mark(Point at, Marker marker, double size, const Colour& colour);
  // A matrix as an image, row by row, stretched over `into` without smoothing.
  void Image(const Rectangle& into, int columns, int rows, const std::vector<Colour>& pixels);

 private:
  Pen& pen_;
};

struct PictureSize {
  double width = 0;
  double height = 0;
};

// The file's bytes. `title` and `description` (what the picture says, in words and tokens) go into
// formats that can hold them. `layout` runs first, to measure; `draw` then draws on that size.
std::string RenderPicture(PictureFormat format, const std::string& title,
                          const std::string& description,
                          const std::function<PictureSize(Canvas&)>& layout,
                          const std::function<void(Canvas&)>& draw);

}  // namespace headlight
