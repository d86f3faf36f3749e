#include "headlight/experiment/interval.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "headlight/base/error.h"

namespace headlight {
namespace {

struct Moments {
  double mean = 0;
  double variance = 0;  // unbiased
};

Moments MomentsOf(std::span<const double> values) {
  Moments moments;
  for (double value : values) moments.mean += value;
  moments.mean /= static_cast<double>(values.size());
  for (double value : values) moments.variance += (value - moments.mean) * (value - moments.mean);
  if (values.size() > 1) moments.variance /= static_cast<double>(values.size() - 1);
  return moments;
}

// Regularised incomplete beta function I_x(a, b) by its continued fraction (Lentz's method;
// DLMF 8.17.22).
double IncompleteBeta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - IncompleteBeta(b, a, 1 - x);
  constexpr double kTiny = 1e-300;
  double fraction = 1, c = 1, d = 0;
  for (int i = 0; i <= 500; ++i) {
    const int m = i / 2;
    double numerator = 1;
    if (i > 0 && i % 2 == 0) {
      numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    } else if (i % 2 == 1) {
      numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    }
    d = 1 + numerator * d;
    d = 1 / (std::abs(d) < kTiny ? kTiny : d);
    c = 1 + numerator / c;
    if (std::abs(c) < kTiny) c = kTiny;
    fraction *= c * d;
    if (std::abs(1 - c * d) < 1e-15) break;
  }
  const double log_beta = std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b);
  const double front = std::exp(a * std::log(x) + b * std::log1p(-x) - log_beta) / a;
  return front * (fraction - 1);
}

// P(|T| > |t|), for real degrees of freedom (Welch's need not be whole).
double StudentTails(double t, double degrees) {
  return IncompleteBeta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

}  // namespace

double StudentCdf(double t, int degrees) {
  const double tail = StudentTails(t, degrees) / 2;
  return t > 0 ? 1 - tail : tail;
}

double StudentPoint95(int degrees) {
  if (degrees < 1) {
    throw Error(ErrorKind::kUsage, "interval: degrees of freedom must be >= 1, found {}", degrees);
  }
  double low = 0, high = 13;  // one degree of freedom has 12.706
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (StudentTails(middle, degrees) > 0.05 ? low : high) = middle;
  }
  return (low + high) / 2;
}

MeanInterval MeanWithInterval(std::span<const double> values) {
  if (values.empty()) throw Error(ErrorKind::kUsage, "interval: there must be at least one value");
  const Moments moments = MomentsOf(values);
  const int count = static_cast<int>(values.size());
  if (count == 1) return {moments.mean, std::numeric_limits<double>::quiet_NaN(), 1};
  return {moments.mean, StudentPoint95(count - 1) * std::sqrt(moments.variance / count), count};
}

double WelchPValue(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2 || b.size() < 2) {
    throw Error(ErrorKind::kUsage,
                "Welch's test: both groups need at least two values, found {} and {}", a.size(),
                b.size());
  }
  const Moments first = MomentsOf(a), second = MomentsOf(b);
  const double na = static_cast<double>(a.size()), nb = static_cast<double>(b.size());
  const double va = first.variance / na, vb = second.variance / nb;
  if (va + vb == 0) return first.mean == second.mean ? 1.0 : 0.0;
  const double t = (first.mean - second.mean) / std::sqrt(va + vb);
  const double degrees = (va + vb) * (va + vb) / (va * va / (na - 1) + vb * vb / (nb - 1));
  return StudentTails(t, degrees);
}

std::string FormatInterval(const MeanInterval& interval, double scale, int digits) {
  if (std::isnan(interval.half_width)) return fmt::format("{:.{}f}", interval.mean * scale, digits);
  return fmt::format("{:.{}f} ± {:.{}f}", interval.mean * scale, digits,
                     interval.half_width * scale, digits);
}

}  // namespace headlight
