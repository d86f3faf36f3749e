#include "headlight/kernels/activation/activation_reference.h"

#include <cmath>
#include <numbers>

#include "headlight/base/random.h"

namespace headlight::reference {
namespace {

template <typename Function>
void ForEach(const Tensor& a, const Tensor& b, Tensor& out, const Function& function) {
  DispatchFloat(a.dtype(), [&]<typename T>() {
    for (int64_t row = 0; row < a.size(0); ++row) {
      for (int64_t i = 0; i < a.size(1); ++i) {
        out.view<T>().row(row)[i] =
            static_cast<T>(function(static_cast<double>(a.view<T>().row(row)[i]),
                                    static_cast<double>(b.view<T>().row(row)[i])));
      }
    }
  });
}

double NormalCumulative(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double NormalDensity(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }

uint32_t Low(int64_t value) { return static_cast<uint32_t>(value); }
uint32_t High(int64_t value) { return static_cast<uint32_t>(static_cast<uint64_t>(value) >> 32); }

// 16 random bits for an element. Features go in groups of 128: feature f takes, of the block with
// counter 16 (f / 128) + f % 16, the half (f / 16) % 8 of its four words (low half first).
uint32_t DropoutBits(const DropoutOptions& options, int64_t sample_id, int64_t position,
                     int64_t feature) {
  const PhiloxCounter key =
      Philox({Low(static_cast<int64_t>(options.seed)), High(static_cast<int64_t>(options.seed))},
             {Low(options.layer), High(options.layer), High(options.step), High(sample_id)});
  const PhiloxCounter words = Philox(
      {key[0], key[1]},
      {Low(feature / 128 * 16 + feature % 16), Low(position), Low(sample_id), Low(options.step)});
  const int64_t half = feature / 16 % 8;
  return words[static_cast<size_t>(half / 2)] >> (half % 2 * 16) & 0xFFFFu;
}

}  // namespace

void ReluForward(const Tensor& x, Tensor& y) {
  ForEach(x, x, y, [](double value, double) { return value < 0 ? 0 : value; });
}

void ReluBackward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  ForEach(y, dy, dx, [](double output, double gradient) { return output <= 0 ? 0 : gradient; });
}

void GeluForward(const Tensor& x, Tensor& y) {
  ForEach(x, x, y, [](double value, double) { return value * NormalCumulative(value); });
}

void GeluBackward(const Tensor& x, const Tensor& dy, Tensor& dx) {
  ForEach(x, dy, dx, [](double value, double gradient) {
    return gradient * (NormalCumulative(value) + value * NormalDensity(value));
  });
}

void Dropout(const Tensor& x, const DropoutOptions& options, Tensor& y) {
  const double kept = std::fmax(1, std::round((1 - options.rate) * 65536));
  DispatchFloat(x.dtype(), [&]<typename T>() {
    for (size_t sample = 0; sample < options.sample_ids.size(); ++sample) {
      const int64_t begin = options.offsets[sample], end = options.offsets[sample + 1];
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t i = 0; i < x.size(1); ++i) {
          const uint32_t bits = DropoutBits(options, options.sample_ids[sample], row - begin, i);
          const T value = x.view<T>().row(row)[i];
          y.view<T>().row(row)[i] = bits < kept ? value * static_cast<T>(65536 / kept) : T{0};
        }
      }
    }
  });
}

}  // namespace headlight::reference
