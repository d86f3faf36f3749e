#include "headlight/report/heatmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <vector>

#include "headlight/report/canvas.h"
#include "headlight/report/colour_scale.h"
#include "headlight/report/width.h"

namespace headlight {
namespace {

struct HeadPlace {
  int64_t layer = 0;
  int64_t head = 0;
};

struct Look {
  double cell = 16;        // side of a weight's square
  double label_size = 10;  // of a token
  double max_label = 110;  // longest label in points
  double title_size = 12;
  double gap = 22;  // between panels
};

constexpr double kMargin = 14;
constexpr int64_t kMaxSquares = 6000;  // weights in a picture; more are drawn as images
constexpr double kBarWidth = 12;

Look SingleLook(double n) {
  Look look;
  look.cell = n <= 60 ? std::clamp(620 / n, 15.0, 34.0) : std::max(900 / n, 0.5);
  look.label_size = std::clamp(look.cell * 0.62, 8.5, 12.0);
  return look;
}

Look GridLook(double n) {
  Look look;
  look.cell = n <= 64 ? std::clamp(330 / n, 8.5, 20.0) : std::max(544 / n, 0.5);
  look.label_size = std::clamp(look.cell * 0.8, 7.0, 10.0);
  look.max_label = 70;
  look.title_size = 10;
  look.gap = 16;
  return look;
}

std::vector<std::string> Characters(const std::string& text) {
  std::vector<std::string> characters;
  for (const char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (starts || characters.empty()) characters.emplace_back();
    characters.back() += c;
  }
  return characters;
}

// Of characters of full width alone (and the ellipsis of a shortened label): written downwards.
bool IsWide(const std::string& label) {
  for (const std::string& character : Characters(label)) {
    if (character != "…" && DisplayWidth(character) != 2) return false;
  }
  return !label.empty();
}

// Heads of one picture, laid out and drawn. A panel is a title of two lines, the key tokens, and
// the matrix; query tokens stand left of the first panel of a line.
class HeatMap {
 public:
  HeatMap(const AttentionPicture& picture, std::vector<HeadPlace> heads, const Look& look)
      : picture_(picture),
        heads_(std::move(heads)),
        look_(look),
        n_(static_cast<int64_t>(picture.tokens.size())),
        side_(look.cell * static_cast<double>(n_)),
        scale_(LargestWeight(picture)),
        label_{look.label_size, false, kInk},
        every_(std::max<int64_t>(1, std::llround(std::ceil(look.label_size * 1.05 / look.cell)))) {}

  PictureSize Layout(Canvas& canvas) {
    labels_.clear();
    for (const std::string& token : picture_.tokens) {
      labels_.push_back(canvas.Shorten(token, label_, look_.max_label));
    }
    ChooseLabelForms(canvas);
    row_label_width_ = 0;
    above_ = look_.label_size * 1.3;
    overhang_ = 0;
    for (int64_t i = 0; i < n_; i += every_) {
      const double width = canvas.TextWidth(LabelAt(i), label_);
      row_label_width_ = std::max(row_label_width_, width);
      MakeRoomAbove(i, width);
    }
    row_label_width_ += 6;
    ChooseColumns(canvas);
    left_ = kMargin + row_label_width_;
    const double lines = std::ceil(static_cast<double>(heads_.size()) / columns_);
    const double bar = kBarWidth + 14 + canvas.TextWidth("0.00", label_) + 12;
    size_.width = left_ + columns_ * panel_width_ + (columns_ - 1) * look_.gap + 18 + bar + kMargin;
    size_.height =
        kMargin + head_height_ + lines * PanelHeight() + (lines - 1) * look_.gap + kMargin;
    return size_;
  }

  void Draw(Canvas& canvas) {
    const TextStyle small{std::max(8.0, look_.label_size), false, kFaintInk};
    canvas.Text({kMargin, kMargin + head_height_ / 2 - 4}, Heading(canvas), small, Anchor::kStart);
    for (size_t i = 0; i < heads_.size(); ++i) {
      const size_t line_index = i / static_cast<size_t>(columns_);
      const auto line = static_cast<double>(line_index);
      const auto column = static_cast<double>(i % static_cast<size_t>(columns_));
      const Point corner{left_ + column * (panel_width_ + look_.gap),
                         kMargin + head_height_ + line * (PanelHeight() + look_.gap)};
      DrawPanel(canvas, heads_[i], corner);
      if (column == 0) DrawRowLabels(canvas, corner.y + TitleHeight() + above_);
    }
    DrawColourBar(canvas);
  }

  std::string Title() const {
    if (heads_.size() == 1) return Name(heads_[0]);
    return fmt::format("attention of {} heads", heads_.size());
  }
  std::string Description() const {
    std::string text = "Tokens:";
    for (const std::string& token : picture_.tokens) text += " " + token;
    text += ".";
    for (const HeadPlace& place : heads_) text += " " + Name(place) + ": " + Figures(place) + ".";
    return text;
  }

 private:
  double TitleHeight() const { return look_.title_size * 2.9; }
  double PanelHeight() const { return TitleHeight() + above_ + side_; }
  double CellMiddle(int64_t i) const { return (static_cast<double>(i) + 0.5) * look_.cell; }
  const std::string& LabelAt(int64_t i) const { return labels_[static_cast<size_t>(i)]; }

  // How a key token stands over its column. Chinese that does not fit runs downwards; when there is
  // Chinese, other labels are turned upright rather than aslant, so that none crosses a neighbour.
  enum class Form { kLevel, kStacked, kTurned };

  void ChooseLabelForms(Canvas& canvas) {
    forms_.clear();
    const double room = look_.cell * static_cast<double>(every_) - 1;
    bool all_fit = true;
    bool any_stacked = false;
    for (const std::string& label : labels_) {
      const bool fits = canvas.TextWidth(label, label_) <= room;
      const bool wide = IsWide(label);
      all_fit = all_fit && fits;
      any_stacked = any_stacked || wide;
      forms_.push_back(!wide ? Form::kTurned : fits ? Form::kLevel : Form::kStacked);
    }
    if (all_fit) std::fill(forms_.begin(), forms_.end(), Form::kLevel);
    slant_ = any_stacked ? 90 : 52;
  }

  void MakeRoomAbove(int64_t i, double width) {
    const Form form = forms_[static_cast<size_t>(i)];
    if (form == Form::kStacked) {
      const auto characters = static_cast<double>(Characters(LabelAt(i)).size());
      above_ = std::max(above_, (characters + 0.4) * look_.label_size * 1.08);
    } else if (form == Form::kTurned) {
      const double turn = slant_ * std::numbers::pi / 180;
      above_ = std::max(above_, width * std::sin(turn) + look_.label_size * 1.1);
      const double right = side_ - CellMiddle(i);
      overhang_ = std::max(overhang_, width * std::cos(turn) + look_.label_size - right);
    }
  }

  void DrawKeyLabel(Canvas& canvas, int64_t i, Point foot) {
    const std::string& label = LabelAt(i);
    switch (forms_[static_cast<size_t>(i)]) {
      case Form::kLevel:
        canvas.Text({foot.x, foot.y - look_.label_size * 0.15}, label, label_, Anchor::kMiddle);
        return;
      case Form::kTurned:
        canvas.Text(foot, label, label_, Anchor::kStart, -slant_);
        return;
      case Form::kStacked:
        break;
    }
    const std::vector<std::string> characters = Characters(label);
    double y = foot.y - look_.label_size * 0.15;
    for (auto c = characters.rbegin(); c != characters.rend(); ++c) {
      canvas.Text({foot.x, y}, *c == "…" ? "⋮" : *c, label_, Anchor::kMiddle);
      y -= look_.label_size * 1.08;
    }
  }

  // As many panels in a line as about 1500 points take; the heads of a layer fill whole lines.
  void ChooseColumns(Canvas& canvas) {
    double title = 0;
    for (const HeadPlace& place : heads_) {
      title = std::max(title, canvas.TextWidth(Name(place), TitleStyle()));
      title = std::max(title, canvas.TextWidth(Figures(place), FiguresStyle()));
    }
    panel_width_ = std::max({side_ + std::max(0.0, overhang_), title, 60.0});
    const double fit = std::max(1.0, std::floor(1500 / (panel_width_ + look_.gap)));
    const double in_layer =
        heads_.front().layer == heads_.back().layer
            ? static_cast<double>(heads_.size())
            : (heads_.size() == static_cast<size_t>(picture_.layers)
                   ? static_cast<double>(heads_.size())  // one head of every layer
                   : static_cast<double>(picture_.heads));
    const double lines = std::ceil(in_layer / fit);
    columns_ = static_cast<int>(std::ceil(in_layer / lines));
    while (lines > 1 && std::fmod(in_layer, columns_) != 0 && columns_ > fit / 2) --columns_;
    columns_ = std::max(columns_, 1);
  }

  TextStyle TitleStyle() const { return {look_.title_size, true, kInk}; }
  TextStyle FiguresStyle() const { return {std::max(7.5, look_.title_size - 2), false, kFaintInk}; }

  std::string Name(const HeadPlace& place) const {
    std::string name = fmt::format("layer {} · head {}", place.layer, place.head);
    if (const HeadFigures* figures = FiguresOf(place); figures && !figures->role.empty()) {
      name += " · " + figures->role;
    }
    return name;
  }
  const HeadFigures* FiguresOf(const HeadPlace& place) const {
    if (picture_.figures.empty()) return nullptr;
    return &picture_.figures[static_cast<size_t>(place.layer)][static_cast<size_t>(place.head)];
  }
  std::string Figures(const HeadPlace& place) const {
    const HeadFigures* figures = FiguresOf(place);
    if (figures == nullptr) return "";
    return fmt::format("entropy {:.2f} nats · mean distance {:.1f}", figures->entropy,
                       figures->mean_distance);
  }
  std::string Heading(Canvas& canvas) const {
    const TextStyle small{std::max(8.0, look_.label_size), false, kFaintInk};
    const char* whole = "rows: the token that looks (query) · columns: the token looked at (key)";
    const double room = size_.width - 2 * kMargin;
    return canvas.TextWidth(whole, small) <= room ? whole : "rows: query · columns: key";
  }

  void DrawPanel(Canvas& canvas, const HeadPlace& place, Point corner) {
    canvas.Text({corner.x, corner.y + look_.title_size * 0.6}, Name(place), TitleStyle(),
                Anchor::kStart);
    canvas.Text({corner.x, corner.y + look_.title_size * 1.85}, Figures(place), FiguresStyle(),
                Anchor::kStart);
    const Point matrix{corner.x, corner.y + TitleHeight() + above_};
    for (int64_t i = 0; i < n_; i += every_) {
      DrawKeyLabel(canvas, i, {matrix.x + CellMiddle(i), matrix.y - look_.label_size * 0.55});
    }
    DrawMatrix(canvas, picture_.At(place.layer, place.head), matrix);
  }

  void DrawMatrix(Canvas& canvas, const std::vector<float>& weights, Point at) {
    const Rectangle whole{at.x, at.y, side_, side_};
    const auto share = [&](size_t i) { return static_cast<double>(weights[i]) / scale_; };
    if (n_ * n_ * static_cast<int64_t>(heads_.size()) > kMaxSquares) {
      std::vector<Colour> pixels;
      pixels.reserve(weights.size());
      for (size_t i = 0; i < weights.size(); ++i) pixels.push_back(HeatColour(share(i)));
      canvas.Image(whole, static_cast<int>(n_), static_cast<int>(n_), pixels);
    } else {
      canvas.Fill({whole}, HeatColour(0));
      // One path a shade: small files, and the same bytes whatever the order of heads.
      constexpr double kShades = 160;
      const double seam = look_.cell >= 8 ? 0.6 : 0;
      std::map<int, std::vector<Rectangle>> by_shade;
      for (size_t i = 0; i < weights.size(); ++i) {
        const double value = share(i);
        const int shade =
            std::isfinite(value) ? static_cast<int>(std::lround(value * kShades)) : -1;
        if (shade == 0) continue;
        const size_t row_index = i / static_cast<size_t>(n_);
        const auto row = static_cast<double>(row_index);
        const auto column = static_cast<double>(i % static_cast<size_t>(n_));
        by_shade[shade].push_back({at.x + column * look_.cell, at.y + row * look_.cell,
                                   look_.cell - seam, look_.cell - seam});
      }
      for (const auto& [shade, rectangles] : by_shade) {
        canvas.Fill(rectangles, HeatColour(shade < 0 ? std::nan("") : shade / kShades));
      }
    }
    canvas.Outline(whole, {kGrid, 0.8, {}});
  }

  void DrawRowLabels(Canvas& canvas, double top) {
    for (int64_t i = 0; i < n_; i += every_) {
      canvas.Text({left_ - 5, top + CellMiddle(i)}, LabelAt(i), label_, Anchor::kEnd);
    }
  }

  void DrawColourBar(Canvas& canvas) {
    const TextStyle tick{std::max(8.0, look_.label_size), false, kInk};
    const double top = kMargin + head_height_ + TitleHeight() + above_;
    const double height = std::min(side_, 240.0);
    const double x = left_ + columns_ * panel_width_ + (columns_ - 1) * look_.gap + 18;
    constexpr int kSteps = 120;
    for (int i = 0; i < kSteps; ++i) {
      const double step = height / kSteps;
      // Overlapping downwards, so that no paper shows between steps.
      canvas.Fill({{x, top + i * step, kBarWidth, std::min(2 * step, height - i * step)}},
                  HeatColour(1 - (i + 0.5) / kSteps));
    }
    canvas.Outline({x, top, kBarWidth, height}, {kGrid, 0.8, {}});
    canvas.Text({x, top - tick.size * 1.5}, "weight", {tick.size, false, kFaintInk},
                Anchor::kStart);
    const int ticks = height < 60 ? 1 : 4;
    for (int i = 0; i <= ticks; ++i) {
      const double share = static_cast<double>(i) / ticks;
      const double y = top + height * (1 - share);
      canvas.Line({{x + kBarWidth, y}, {x + kBarWidth + 3, y}}, {kFaintInk, 0.8, {}});
      canvas.Text({x + kBarWidth + 6, y}, fmt::format("{:.2f}", share * scale_), tick,
                  Anchor::kStart);
    }
  }

  const AttentionPicture& picture_;
  std::vector<HeadPlace> heads_;
  Look look_;
  int64_t n_;
  double side_;
  double scale_;
  TextStyle label_;
  int64_t every_;  // labels of every so-manieth token where all would overlap
  std::vector<std::string> labels_;
  std::vector<Form> forms_;
  double slant_ = 0;  // degrees
  double head_height_ = 18;
  double row_label_width_ = 0;
  double above_ = 0;
  double overhang_ = 0;
  double panel_width_ = 0;
  int columns_ = 1;
  double left_ = 0;
  PictureSize size_;
};

std::string Render(HeatMap map, PictureFormat format) {
  return RenderPicture(
      format, map.Title(), map.Description(), [&](Canvas& canvas) { return map.Layout(canvas); },
      [&](Canvas& canvas) { map.Draw(canvas); });
}

}  // namespace

std::string DrawHead(const AttentionPicture& picture, int64_t layer, int64_t head,
                     PictureFormat format) {
  CheckAttentionPlace(picture, layer, head);
  const auto n = static_cast<double>(picture.tokens.size());
  return Render(HeatMap(picture, {{layer, head}}, SingleLook(n)), format);
}

std::string DrawHeadGrid(const AttentionPicture& picture, int64_t layer, int64_t head,
                         PictureFormat format) {
  CheckAttentionPlace(picture, std::max<int64_t>(layer, 0), std::max<int64_t>(head, 0));
  std::vector<HeadPlace> heads;
  for (int64_t l = 0; l < picture.layers; ++l) {
    for (int64_t h = 0; h < picture.heads; ++h) {
      if ((layer < 0 || l == layer) && (head < 0 || h == head)) heads.push_back({l, h});
    }
  }
  const auto n = static_cast<double>(picture.tokens.size());
  return Render(HeatMap(picture, heads, GridLook(n)), format);
}

}  // namespace headlight
