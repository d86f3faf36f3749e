#include "headlight/report/canvas.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>
#include <pango/pangocairo.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "headlight/base/error.h"
#include "headlight/report/escape.h"
#include "headlight/report/width.h"

namespace headlight {
namespace {

struct CairoDeleter {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(PangoLayout* layout) const { g_object_unref(layout); }
  void operator()(PangoFontMap* map) const { g_object_unref(map); }
  void operator()(PangoContext* context) const { g_object_unref(context); }
  void operator()(PangoFontDescription* font) const { pango_font_description_free(font); }
  void operator()(cairo_font_options_t* options) const { cairo_font_options_destroy(options); }
};
template <typename T>
using Owned = std::unique_ptr<T, CairoDeleter>;

// Latin from the first, Chinese from the second; whatever else by the system's fallback.
constexpr const char* kFontFamilies = "DejaVu Sans, Noto Sans CJK SC, sans-serif";

cairo_status_t AppendBytes(void* target, const unsigned char* bytes, unsigned length) {
  static_cast<std::string*>(target)->append(reinterpret_cast<const char*>(bytes), length);
  return CAIRO_STATUS_SUCCESS;
}

void CheckStatus(cairo_status_t status) {
  if (status == CAIRO_STATUS_SUCCESS) return;
  throw Error(status == CAIRO_STATUS_NO_MEMORY ? ErrorKind::kResource : ErrorKind::kInternal,
              "picture: cairo: {}", cairo_status_to_string(status));
}

}  // namespace

// One surface's cairo and pango state. The font map is its own: cairo's shared one is not safe to
// use from several threads.
class Canvas::Pen {
 public:
  explicit Pen(cairo_surface_t* surface)
      : cairo_(cairo_create(surface)),
        fonts_(pango_cairo_font_map_new_for_font_type(CAIRO_FONT_TYPE_FT)),
        context_(pango_font_map_create_context(fonts_.get())) {
    CheckStatus(cairo_status(cairo_.get()));
    pango_cairo_font_map_set_resolution(PANGO_CAIRO_FONT_MAP(fonts_.get()), 72);
    // Glyphs stand where the outlines say: the same layout in every format.
    const Owned<cairo_font_options_t> options(cairo_font_options_create());
    cairo_font_options_set_hint_style(options.get(), CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options.get(), CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_antialias(options.get(), CAIRO_ANTIALIAS_GRAY);
    pango_cairo_context_set_font_options(context_.get(), options.get());
    pango_context_set_base_dir(context_.get(), PANGO_DIRECTION_LTR);
    pango_context_set_language(context_.get(), pango_language_from_string("zh-cn"));
    pango_context_set_round_glyph_positions(context_.get(), FALSE);
    pango_cairo_update_context(cairo_.get(), context_.get());
    layout_.reset(pango_layout_new(context_.get()));
    pango_layout_set_single_paragraph_mode(layout_.get(), TRUE);
    pango_layout_set_auto_dir(layout_.get(), FALSE);
  }

  cairo_t* cairo() const { return cairo_.get(); }

  PangoLayout* Layout(std::string_view text, const TextStyle& style) {
    auto& font = fonts_by_style_[{style.size, style.bold}];
    if (font == nullptr) {
      font.reset(pango_font_description_from_string(kFontFamilies));
      pango_font_description_set_absolute_size(font.get(), style.size * PANGO_SCALE);
      if (style.bold) pango_font_description_set_weight(font.get(), PANGO_WEIGHT_BOLD);
    }
    pango_layout_set_font_description(layout_.get(), font.get());
    const std::string printable = Printable(text);
    pango_layout_set_text(layout_.get(), printable.data(), static_cast<int>(printable.size()));
    return layout_.get();
  }

  void SetColour(const Colour& colour) {
    cairo_set_source_rgb(cairo(), colour.red, colour.green, colour.blue);
  }

  void SetLine(const LineStyle& style) {
    SetColour(style.colour);
    cairo_set_line_width(cairo(), style.width);
    cairo_set_dash(cairo(), style.dashes.data(), static_cast<int>(style.dashes.size()), 0);
    cairo_set_line_join(cairo(), CAIRO_LINE_JOIN_ROUND);
  }

 private:
  Owned<cairo_t> cairo_;
  Owned<PangoFontMap> fonts_;
  Owned<PangoContext> context_;
  Owned<PangoLayout> layout_;
  std::map<std::pair<double, bool>, Owned<PangoFontDescription>> fonts_by_style_;
};

double Canvas::TextWidth(std::string_view text, const TextStyle& style) {
  int width = 0;
  pango_layout_get_size(pen_.Layout(text, style), &width, nullptr);
  return static_cast<double>(width) / PANGO_SCALE;
}

std::string Canvas::Shorten(std::string_view text, const TextStyle& style, double width) {
  // No glyph of one column is below a sixth of the size; this bounds the work for a hostile token.
  const int most = static_cast<int>(std::clamp(width / style.size * 6, 1.0, 1e6)) + 1;
  std::string shortened = TruncateToWidth(text, most);
  if (TextWidth(shortened, style) <= width) return shortened;
  int fits = 1;  // at least the ellipsis
  for (int above = DisplayWidth(shortened); above - fits > 1;) {
    const int middle = fits + (above - fits) / 2;
    (TextWidth(TruncateToWidth(shortened, middle), style) <= width ? fits : above) = middle;
  }
  return TruncateToWidth(shortened, fits);
}

void Canvas::Text(Point at, std::string_view text, const TextStyle& style, Anchor anchor,
                  double degrees) {
  PangoLayout* layout = pen_.Layout(text, style);
  int width = 0;
  pango_layout_get_size(layout, &width, nullptr);
  // Lines are centred on half the height of a capital, whatever fonts their characters came from.
  const double baseline = static_cast<double>(pango_layout_get_baseline(layout)) / PANGO_SCALE;
  const double down = style.size * 0.36 - baseline;
  double left = 0;
  if (anchor == Anchor::kMiddle) left = -0.5 * width / PANGO_SCALE;
  if (anchor == Anchor::kEnd) left = -1.0 * width / PANGO_SCALE;
  cairo_t* cairo = pen_.cairo();
  cairo_save(cairo);
  cairo_translate(cairo, at.x, at.y);
  if (degrees != 0) cairo_rotate(cairo, degrees * std::numbers::pi / 180);
  cairo_move_to(cairo, left, down);
  pen_.SetColour(style.colour);
  pango_cairo_show_layout(cairo, layout);
  cairo_restore(cairo);
}

void Canvas::Fill(const std::vector<Rectangle>& rectangles, const Colour& colour) {
  if (rectangles.empty()) return;
  for (const Rectangle& r : rectangles) {
    cairo_rectangle(pen_.cairo(), r.x, r.y, r.width, r.height);
  }
  pen_.SetColour(colour);
  cairo_fill(pen_.cairo());
}

void Canvas::Outline(const Rectangle& rectangle, const LineStyle& style) {
  pen_.SetLine(style);
  cairo_rectangle(pen_.cairo(), rectangle.x, rectangle.y, rectangle.width, rectangle.height);
  cairo_stroke(pen_.cairo());
}

void Canvas::Line(const std::vector<Point>& points, const LineStyle& style) {
  if (points.size() < 2) return;
  pen_.SetLine(style);
  cairo_move_to(pen_.cairo(), points[0].x, points[0].y);
  for (size_t i = 1; i < points.size(); ++i) cairo_line_to(pen_.cairo(), points[i].x, points[i].y);
  cairo_stroke(pen_.cairo());
}

void Canvas::Mark(Point at, Marker marker, double size, const Colour& colour) {
  cairo_t* cairo = pen_.cairo();
  const double half = size / 2;
  const auto polygon = [&](std::initializer_list<Point> corners) {
    for (const Point& p : corners) cairo_line_to(cairo, at.x + p.x * half, at.y + p.y * half);
    cairo_close_path(cairo);
  };
  cairo_new_path(cairo);
  pen_.SetColour(colour);
  switch (marker) {
    case Marker::kCircle:
      cairo_arc(cairo, at.x, at.y, half, 0, 2 * std::numbers::pi);
      break;
    case Marker::kSquare:
      polygon({{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}});
      break;
    case Marker::kTriangle:
      polygon({{0, -1.15}, {1.1, 0.85}, {-1.1, 0.85}});
      break;
    case Marker::kDiamond:
      polygon({{0, -1.25}, {1.25, 0}, {0, 1.25}, {-1.25, 0}});
      break;
    case Marker::kDownTriangle:
      polygon({{0, 1.15}, {1.1, -0.85}, {-1.1, -0.85}});
      break;
    case Marker::kCross:
      polygon({{-0.4, -1.1},
               {0.4, -1.1},
               {0.4, -0.4},
               {1.1, -0.4},
               {1.1, 0.4},
               {0.4, 0.4},
               {0.4, 1.1},
               {-0.4, 1.1},
               {-0.4, 0.4},
               {-1.1, 0.4},
               {-1.1, -0.4},
               {-0.4, -0.4}});
      break;
  }
  cairo_fill(cairo);
}

void Canvas::Image(const Rectangle& into, int columns, int rows,
                   const std::vector<Colour>& pixels) {
  const Owned<cairo_surface_t> image(cairo_image_surface_create(CAIRO_FORMAT_RGB24, columns, rows));
  CheckStatus(cairo_surface_status(image.get()));
  const int stride = cairo_image_surface_get_stride(image.get());
  unsigned char* data = cairo_image_surface_get_data(image.get());
  const auto byte = [](double share) { return static_cast<uint32_t>(std::lround(share * 255)); };
  for (int row = 0; row < rows; ++row) {
    auto* line = reinterpret_cast<uint32_t*>(data + static_cast<ptrdiff_t>(row) * stride);
    for (int column = 0; column < columns; ++column) {
      const Colour& c = pixels[static_cast<size_t>(row) * static_cast<size_t>(columns) +
                               static_cast<size_t>(column)];
      line[column] = byte(c.red) << 16 | byte(c.green) << 8 | byte(c.blue);
    }
  }
  cairo_surface_mark_dirty(image.get());
  cairo_t* cairo = pen_.cairo();
  cairo_save(cairo);
  cairo_translate(cairo, into.x, into.y);
  cairo_scale(cairo, into.width / columns, into.height / rows);
  cairo_set_source_surface(cairo, image.get(), 0, 0);
  const bool shrinks = columns > into.width || rows > into.height;
  cairo_pattern_set_filter(cairo_get_source(cairo),
                           shrinks ? CAIRO_FILTER_GOOD : CAIRO_FILTER_NEAREST);
  cairo_rectangle(cairo, 0, 0, columns, rows);
  cairo_fill(cairo);
  cairo_restore(cairo);
}

namespace {

// Twice the points, so that small labels are sharp; less for pictures that would be huge.
constexpr double kPngScale = 2;
constexpr double kMaxPngSide = 16000;

std::string RenderPng(const PictureSize& size, const std::function<void(Canvas&)>& draw) {
  const double scale = std::min(kPngScale, kMaxPngSide / std::max(size.width, size.height));
  const Owned<cairo_surface_t> surface(cairo_image_surface_create(
      CAIRO_FORMAT_RGB24, static_cast<int>(std::lround(size.width * scale)),
      static_cast<int>(std::lround(size.height * scale))));
  CheckStatus(cairo_surface_status(surface.get()));
  cairo_surface_set_device_scale(surface.get(), scale, scale);
  {
    Canvas::Pen pen(surface.get());
    Canvas canvas(pen);
    canvas.Fill({{0, 0, size.width + 1, size.height + 1}}, kPaper);
    draw(canvas);
    CheckStatus(cairo_status(pen.cairo()));
  }
  std::string bytes;
  CheckStatus(cairo_surface_write_to_png_stream(surface.get(), AppendBytes, &bytes));
  return bytes;
}

void RenderVector(cairo_surface_t* surface, const PictureSize& size,
                  const std::function<void(Canvas&)>& draw) {
  CheckStatus(cairo_surface_status(surface));
  {
    Canvas::Pen pen(surface);
    Canvas canvas(pen);
    canvas.Fill({{0, 0, size.width, size.height}}, kPaper);
    draw(canvas);
    CheckStatus(cairo_status(pen.cairo()));
  }
  cairo_surface_finish(surface);
  CheckStatus(cairo_surface_status(surface));
}

std::string RenderPdf(const PictureSize& size, const std::string& title,
                      const std::function<void(Canvas&)>& draw) {
  std::string bytes;
  const Owned<cairo_surface_t> surface(
      cairo_pdf_surface_create_for_stream(AppendBytes, &bytes, size.width, size.height));
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, title.c_str());
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE,
                                 "2000-01-01T00:00:00Z");  // no clock in the bytes
  RenderVector(surface.get(), size, draw);
  return bytes;
}

// cairo numbers surfaces and images through the life of the process (id="image42"): renumbered from
// 0 here, so that a picture's bytes do not depend on what was drawn before it.
std::string Renumbered(const std::string& svg, std::string_view prefix) {
  std::map<std::string, std::string> names;
  std::string result;
  size_t done = 0;
  for (size_t at = svg.find(prefix); at != std::string::npos; at = svg.find(prefix, done)) {
    size_t end = at + prefix.size();
    while (end < svg.size() && svg[end] >= '0' && svg[end] <= '9') ++end;
    const std::string number = svg.substr(at + prefix.size(), end - at - prefix.size());
    const bool is_name = !number.empty() && at > 0 && (svg[at - 1] == '"' || svg[at - 1] == '#');
    result.append(svg, done, at - done);
    if (is_name) {
      const std::string next = fmt::format("{}{}", prefix, names.size());
      result += names.try_emplace(number, next).first->second;
    } else {
      result.append(svg, at, end - at);
    }
    done = end;
  }
  return result.append(svg, done);
}

// Browsers smooth enlarged images; the squares of a matrix are to stay squares.
std::string WithSharpImages(std::string svg) {
  static constexpr std::string_view kImage = "<image ";
  static constexpr std::string_view kStyle = "style=\"image-rendering:pixelated\" ";
  for (size_t at = svg.find(kImage); at != std::string::npos; at = svg.find(kImage, at + 1)) {
    svg.insert(at + kImage.size(), kStyle);
  }
  return svg;
}

std::string RenderSvg(const PictureSize& size, const std::string& title,
                      const std::string& description, const std::function<void(Canvas&)>& draw) {
  std::string bytes;
  const Owned<cairo_surface_t> surface(
      cairo_svg_surface_create_for_stream(AppendBytes, &bytes, size.width, size.height));
  RenderVector(surface.get(), size, draw);
  std::string svg = WithSharpImages(Renumbered(Renumbered(bytes, "surface"), "image"));
  // Text is drawn as outlines; in words it is there for those who do not see it, and for searching.
  const size_t root = svg.find("<svg ");
  const size_t end = svg.find('>', root);
  if (root == std::string::npos || end == std::string::npos) {
    throw Error(ErrorKind::kInternal, "picture: cairo wrote no SVG root");
  }
  svg.insert(end + 1, "\n<title>" + EscapeHtml(Printable(title)) + "</title>\n<desc>" +
                          EscapeHtml(Printable(description)) + "</desc>");
  return svg;
}

}  // namespace

PictureFormat ParsePictureFormat(std::string_view name) {
  if (name == "png") return PictureFormat::kPng;
  if (name == "svg") return PictureFormat::kSvg;
  if (name == "pdf") return PictureFormat::kPdf;
  throw Error(ErrorKind::kUsage, "picture: the format must be png, svg or pdf, found \"{}\"", name);
}

std::string RenderPicture(PictureFormat format, const std::string& title,
                          const std::string& description,
                          const std::function<PictureSize(Canvas&)>& layout,
                          const std::function<void(Canvas&)>& draw) {
  PictureSize size;
  {
    const Owned<cairo_surface_t> scratch(cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1));
    Canvas::Pen pen(scratch.get());
    Canvas canvas(pen);
    size = layout(canvas);
  }
  size = {std::ceil(size.width), std::ceil(size.height)};
  switch (format) {
    case PictureFormat::kPng:
      return RenderPng(size, draw);
    case PictureFormat::kSvg:
      return RenderSvg(size, title, description, draw);
    case PictureFormat::kPdf:
      return RenderPdf(size, title, draw);
  }
  throw Error(ErrorKind::kInternal, "picture: unknown format");
}

}  // namespace headlight
