// Means over seeds with confidence intervals (Student 1908), and whether differences exceed the
// spread.
#pragma once

#include <span>
#include <string>

namespace headlight {

// P(T <= t) for Student's t with `degrees` >= 1 degrees of freedom.
double StudentCdf(double t, int degrees);
// The two-sided 95 % point: P(|T| <= value) = 0.95. Throws kUsage for degrees < 1.
double StudentPoint95(int degrees);

struct MeanInterval {
  double mean = 0;
  double half_width =
      0;  // of the 95 % interval; NaN for a single value, which says nothing about spread
  int count = 0;
};

// Throws kUsage for no values.
MeanInterval MeanWithInterval(std::span<const double> values);

// Welch's t test (Welch 1947) of two groups of at least two values each: the two-sided p value.
// Equal groups without any spread give 1, different ones 0.
double WelchPValue(std::span<const double> a, std::span<const double> b);

// "87.3 ± 0.4" in units of `scale` (100 for percent), or "87.3" for one value.
std::string FormatInterval(const MeanInterval& interval, double scale, int digits);

}  // namespace headlight
