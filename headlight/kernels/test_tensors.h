// What the tests of kernels share: random tensors inside poisoned surroundings, and comparison by
// accumulated magnitude.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "headlight/base/random.h"
#include "headlight/base/threads.h"
#include "headlight/tensor/tensor.h"

namespace headlight::testing_tensors {

// A matrix of standard normals whose rows lie `gap` elements apart, the gaps being NaN.
inline Tensor RandomMatrix(int64_t rows, int64_t columns, uint64_t seed, int64_t gap = 0,
                           DType dtype = DType::kF32) {
  Tensor whole = Tensor::Zeros({rows, columns + gap}, dtype, MemoryTag::kOther);
  RandomStream random(seed, 77);
  DispatchFloat(dtype, [&]<typename T>() {
    for (int64_t r = 0; r < rows; ++r) {
      T* row = whole.view<T>().row(r);
      // Rounded to f32, so that f32 and f64 copies hold the same numbers.
      for (int64_t c = 0; c < columns; ++c) row[c] = static_cast<float>(random.Normal());
      for (int64_t c = columns; c < columns + gap; ++c)
        row[c] = std::numeric_limits<T>::quiet_NaN();
    }
  });
  return whole.Slice(1, 0, columns);
}

inline Tensor RandomVector(int64_t size, uint64_t seed, DType dtype = DType::kF32) {
  return RandomMatrix(1, size, seed, 0, dtype).Reshape({size});
}

inline Tensor Wide(const Tensor& tensor) { return tensor.CastTo(DType::kF64, MemoryTag::kOther); }

// |tensor| in f64.
inline Tensor Magnitude(const Tensor& tensor) {
  Tensor wide = Wide(tensor);
  for (int64_t i = 0; i < wide.elements(); ++i) {
    wide.data<double>()[i] = std::fabs(wide.data<double>()[i]);
  }
  return wide;
}

// Calls visit(index text, a, b, c) over equal-shaped tensors, as doubles.
inline double At(const Tensor& contiguous, int64_t i) { return contiguous.data<double>()[i]; }

// |found - wanted| <= factor eps_f32 magnitude, element by element. The magnitude is what the terms
// of the sum add up to without their signs: rounding errors scale with it, not with the result.
inline void ExpectWithin(const Tensor& found, const Tensor& wanted, const Tensor& magnitude,
                         double factor) {
  const Tensor f = Wide(found), w = Wide(wanted), m = Wide(magnitude);
  ASSERT_EQ(f.shape(), w.shape());
  ASSERT_EQ(f.shape(), m.shape());
  double worst = 0;
  int64_t at = -1;
  for (int64_t i = 0; i < f.elements(); ++i) {
    const double allowed = std::numeric_limits<float>::epsilon() * At(m, i);
    const double error = std::fabs(At(f, i) - At(w, i));
    const double ratio = error == 0 ? 0 : error / allowed;
    if (!(ratio <= worst)) {
      worst = ratio;
      at = i;
      if (std::isnan(ratio)) break;
    }
  }
  EXPECT_LE(worst, factor) << "element " << at << " of " << f.shape().ToString() << ": found "
                           << (at < 0 ? 0 : At(f, at)) << ", wanted " << (at < 0 ? 0 : At(w, at));
}

// Bit by bit (contiguous copies are compared, so strides do not matter).
inline void ExpectSameBits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.Clone(MemoryTag::kOther), y = b.Clone(MemoryTag::kOther);
  ASSERT_EQ(x.shape(), y.shape());
  EXPECT_EQ(0, std::memcmp(x.bytes(), y.bytes(),
                           static_cast<size_t>(x.elements()) * DTypeSize(x.dtype())));
}

// Runs body() with 1, 2, 3 and 8 threads; each must give the same bits.
inline void ExpectSameForAnyThreads(const std::function<Tensor()>& body) {
  const int before = NumThreads();
  SetNumThreads(1);
  const Tensor wanted = body();
  for (int threads : {2, 3, 8}) {
    SetNumThreads(threads);
    ExpectSameBits(body(), wanted);
  }
  SetNumThreads(before);
}

// d(sum of weights * outputs) / d input by central differences in f64: `loss` is called with the
// input changed in place.
inline void ExpectGradient(Tensor& input, const Tensor& gradient,
                           const std::function<double()>& loss, double tolerance = 1e-7) {
  ASSERT_EQ(input.dtype(), DType::kF64);
  ASSERT_EQ(input.elements(), gradient.elements());
  const Tensor flat = gradient.Clone(MemoryTag::kOther);
  constexpr double kStep = 1e-5;
  for (int64_t i = 0; i < input.elements(); ++i) {
    double& value = input.data<double>()[i];
    const double kept = value;
    value = kept + kStep;
    const double above = loss();
    value = kept - kStep;
    const double below = loss();
    value = kept;
    const double wanted = (above - below) / (2 * kStep);
    EXPECT_NEAR(At(flat, i), wanted, tolerance * std::fmax(1, std::fabs(wanted)))
        << "element " << i;
  }
}

// sum of a[i] * b[i], f64.
inline double Dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i) sum += At(a, i) * At(b, i);
  return sum;
}

}  // namespace headlight::testing_tensors
