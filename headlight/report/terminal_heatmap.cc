#include "headlight/report/terminal_heatmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "headlight/base/error.h"
#include "headlight/report/canvas.h"
#include "headlight/report/colour_scale.h"
#include "headlight/report/width.h"

namespace headlight {
namespace {

constexpr int kMaxLabel = 16;  // columns
constexpr int kMinCell = 2;    // a square, about

// One of the 6 x 6 x 6 colours of a 256-colour terminal: level 0, 95, 135, 175, 215, 255.
int TerminalColour(const Colour& colour) {
  const auto level = [](double share) {
    const double value = share * 255;
    return value < 48 ? 0 : std::clamp(static_cast<int>(std::lround((value - 55) / 40)), 1, 5);
  };
  return 16 + 36 * level(colour.red) + 6 * level(colour.green) + level(colour.blue);
}

std::string Repeat(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

class Map {
 public:
  Map(const AttentionPicture& picture, const std::vector<float>& weights,
      const TerminalHeatMapOptions& options)
      : picture_(picture), weights_(weights), options_(options), scale_(LargestWeight(picture)) {
    label_ = 3;
    cell_ = kMinCell;
    for (const std::string& token : picture.tokens) {
      const int width = DisplayWidth(token);
      label_ = std::max(label_, std::min(width, kMaxLabel));
      cell_ = std::max(cell_, std::min(width, kMaxCell));
    }
    // Wide cells only where every key fits beside the others; else the labels are numbers.
    const int n = static_cast<int>(picture.tokens.size());
    const int room = std::max(options.columns - label_ - 5, kMinCell + 1);
    if (n * (cell_ + 1) > room) cell_ = std::clamp(room / std::max(n, 1) - 1, kMinCell, cell_);
    per_block_ = std::max(1, room / (cell_ + 1));
  }

  std::string Render() {
    std::string text;
    const int n = static_cast<int>(picture_.tokens.size());
    for (int begin = 0; begin < n; begin += per_block_) {
      if (begin > 0) text += "\n";
      text += Block(begin, std::min(n, begin + per_block_));
    }
    return text + Legend();
  }

 private:
  static constexpr int kMaxCell = 8;

  // Rows are numbered; a key whose token does not fit over its column shows the number instead.
  std::string Block(int begin, int end) const {
    const int n = static_cast<int>(picture_.tokens.size());
    std::string text = std::string(static_cast<size_t>(label_ + 5), ' ');
    for (int key = begin; key < end; ++key) {
      const std::string& token = picture_.tokens[static_cast<size_t>(key)];
      const bool fits = DisplayWidth(token) <= cell_;
      text +=
          FitToWidth(fits ? token : fmt::format("{}", Number(key)), cell_, Align::kCentre) + " ";
    }
    TrimEnd(text);
    text += "\n";
    for (int query = 0; query < n; ++query) {
      text += fmt::format("{:>3} ", query + 1) +
              FitToWidth(picture_.tokens[static_cast<size_t>(query)], label_, Align::kRight) + " ";
      for (int key = begin; key < end; ++key) {
        text += Square(weights_[static_cast<size_t>(query * n + key)]) + " ";
      }
      TrimEnd(text);
      text += "\n";
    }
    return text;
  }

  // Two columns hold two digits: 7, 42, then the last two of more.
  int Number(int key) const { return cell_ >= 3 ? key + 1 : (key + 1) % 100; }

  std::string Square(float weight) const {
    return Shade(static_cast<double>(weight) / scale_, cell_);
  }

  std::string Shade(double share, int width) const {
    if (std::isnan(share)) return Repeat("?", width);
    if (options_.colour) {
      return fmt::format("\x1b[48;5;{}m{}\x1b[0m", TerminalColour(HeatColour(share)),
                         std::string(static_cast<size_t>(width), ' '));
    }
    static constexpr std::array<std::string_view, 5> kShades{"·", "░", "▒", "▓", "█"};
    // The bounds are 1/16, 3/16, 7/16 and 11/16 of the largest weight.
    size_t step = 0;
    for (const double bound : {0.0625, 0.1875, 0.4375, 0.6875}) step += share >= bound ? 1 : 0;
    return step == 0 ? FitToWidth(kShades[0], width, Align::kCentre) : Repeat(kShades[step], width);
  }

  std::string Legend() const {
    std::string text = "\nweight ";
    for (const double share : {0.0, 0.125, 0.3125, 0.5625, 1.0}) {
      text += fmt::format(" {:.2f} {}", share * scale_, Shade(share, 2));
    }
    return text + "   rows look at columns\n";
  }

  static void TrimEnd(std::string& text) {
    while (!text.empty() && text.back() == ' ') text.pop_back();
  }

  const AttentionPicture& picture_;
  const std::vector<float>& weights_;
  TerminalHeatMapOptions options_;
  double scale_;
  int label_ = 0;
  int cell_ = 0;
  int per_block_ = 0;
};

std::string TitleOf(const AttentionPicture& picture, int64_t layer, int64_t head) {
  std::string title = fmt::format("layer {} · head {}", layer, head);
  if (!picture.figures.empty()) {
    const HeadFigures& figures =
        picture.figures[static_cast<size_t>(layer)][static_cast<size_t>(head)];
    if (!figures.role.empty()) title += " · " + Printable(figures.role);
    title += fmt::format(" · entropy {:.2f} nats · mean distance {:.1f}", figures.entropy,
                         figures.mean_distance);
  }
  return title;
}

}  // namespace

std::string TerminalHeatMap(const AttentionPicture& picture, int64_t layer, int64_t head,
                            const TerminalHeatMapOptions& options) {
  CheckAttentionPlace(picture, layer, head);
  return TitleOf(picture, layer, head) + "\n" +
         Map(picture, picture.At(layer, head), options).Render();
}

}  // namespace headlight
