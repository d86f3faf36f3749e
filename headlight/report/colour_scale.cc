#include "headlight/report/colour_scale.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headlight {

Colour HeatColour(double share) {
  if (std::isnan(share)) return {0.84, 0.37, 0.0};
  static constexpr std::array<Colour, 6> kStops{{{0.965, 0.975, 0.990},
                                                 {0.800, 0.872, 0.940},
                                                 {0.580, 0.740, 0.872},
                                                 {0.330, 0.570, 0.770},
                                                 {0.140, 0.385, 0.620},
                                                 {0.040, 0.185, 0.380}}};
  // Attention is mostly small: the lower half gets more of the colours. The colour bar shows it.
  const double place = std::pow(std::clamp(share, 0.0, 1.0), 0.7) * (kStops.size() - 1);
  const size_t below = std::min(static_cast<size_t>(place), kStops.size() - 2);
  const double part = place - static_cast<double>(below);
  const Colour& a = kStops[below];
  const Colour& b = kStops[below + 1];
  return {a.red + (b.red - a.red) * part, a.green + (b.green - a.green) * part,
          a.blue + (b.blue - a.blue) * part};
}

double LargestWeight(const AttentionPicture& picture) {
  float largest = 0;
  for (const auto& layer : picture.weights) {
    for (const auto& head : layer) {
      for (const float weight : head)
        largest = std::max(largest, std::isfinite(weight) ? weight : 0);
    }
  }
  // Quarters of these have at most two decimals: the ticks of the colour bar.
  for (const double round : {0.04, 0.08, 0.12, 0.16, 0.2, 0.24, 0.32, 0.4, 0.48, 0.6, 0.8}) {
    if (static_cast<double>(largest) <= round + 1e-6) return round;
  }
  return 1;
}

}  // namespace headlight
