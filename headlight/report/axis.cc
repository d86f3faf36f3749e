#include "headlight/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace headlight {
namespace {

// 1, 2 or 5 times a power of ten, at least `rough`.
double RoundStep(double rough) {
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

int Decimals(double step) {
  return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 12);
}

}  // namespace

std::string TickLabel(double value, double step) {
  const double size = std::max(std::abs(value), step);
  if (std::abs(value) < step * 1e-6) return "0";
  if (size >= 1e12 || size < 1e-4) return fmt::format("{:.3g}", value);
  struct Unit {
    double size;
    const char* suffix;
  };
  for (const Unit& unit : {Unit{1e9, "G"}, Unit{1e6, "M"}, Unit{1e4, "k"}}) {
    if (size < unit.size) continue;
    const double divisor = unit.size == 1e4 ? 1e3 : unit.size;
    return fmt::format("{:.{}f}{}", value / divisor, Decimals(step / divisor), unit.suffix);
  }
  return fmt::format("{:.{}f}", value, Decimals(step));
}

Axis LinearAxis(const std::vector<double>& values, const AxisOptions& options) {
  double low = INFINITY, high = -INFINITY;
  for (const double value : values) {
    // Beyond 1e300 a difference overflows; nothing that is measured comes near.
    if (!(std::abs(value) <= 1e300)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) low = 0, high = 1;
  if (options.from_zero) low = std::min(low, 0.0), high = std::max(high, 0.0);
  const double smallest = std::max(std::abs(high), std::abs(low)) * 1e-6;
  if (high - low <= smallest) {
    const double pad = high == 0 ? 1 : std::abs(high) * 0.1;
    if (!options.from_zero || low != 0) low -= pad;
    high += pad;
  }
  const double step = RoundStep((high - low) / options.ticks);
  Axis axis;
  axis.low = options.whole_range ? std::floor(low / step + 1e-9) * step : low;
  axis.high = options.whole_range ? std::ceil(high / step - 1e-9) * step : high;
  for (double i = std::ceil(axis.low / step - 1e-9); i * step <= axis.high + step * 1e-6; ++i) {
    const double value = i * step;
    axis.ticks.push_back(value);
    axis.labels.push_back(options.percent ? TickLabel(value * 100, step * 100) + " %"
                                          : TickLabel(value, step));
  }
  return axis;
}

Axis Log2Axis(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !(value > 0) || std::isinf(value); });
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  Axis axis;
  for (const double value : values) {
    axis.ticks.push_back(std::log2(value));
    axis.labels.push_back(fmt::format("{}", value));
  }
  // Half a doubling on each side, so that no point stands on the frame.
  axis.low = axis.ticks.empty() ? 0 : axis.ticks.front() - 0.5;
  axis.high = axis.ticks.empty() ? 1 : axis.ticks.back() + 0.5;
  return axis;
}

}  // namespace headlight
