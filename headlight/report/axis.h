// Numbers along a chart's side: where the ticks stand and how they read. Internal to report/.
#pragma once

#include <string>
#include <vector>

namespace headlight {

struct Axis {
  double low = 0;
  double high = 1;
  std::vector<double> ticks;
  std::vector<std::string> labels;

  double Share(double value) const { return (value - low) / (high - low); }
};

struct AxisOptions {
  int ticks = 6;  // about so many
  bool from_zero = false;
  bool percent = false;
  bool whole_range = true;  // grow to whole steps; false: end at the data
};

// Steps of 1, 2 or 5 times a power of ten over the finite ones of `values`.
Axis LinearAxis(const std::vector<double>& values, const AxisOptions& options);

// Ticks at the distinct values, as 1, 2, 4, 8; positions are their logarithms (low and high too).
Axis Log2Axis(std::vector<double> values);

// 1234567 -> "1.23M", 0.00012 -> "1.2e-4"; the shortest that tells steps of `step` apart.
std::string TickLabel(double value, double step);

}  // namespace headlight
