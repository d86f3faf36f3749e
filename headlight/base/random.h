// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3").
//
// A number is a pure function of (key, counter), so dropout, initialisation and shuffles do not
// depend on threads, batches or the order of calls.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace headlight {

using PhiloxKey = std::array<uint32_t, 2>;
using PhiloxCounter = std::array<uint32_t, 4>;

// Ten rounds of Philox4x32: four uniform 32-bit words.
inline PhiloxCounter Philox(PhiloxKey key, PhiloxCounter counter) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// A sequence of numbers named by (seed, stream); two streams of a seed are independent.
class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t stream);

  uint32_t Next();                 // uniform 32 bits
  uint64_t Below(uint64_t bound);  // uniform in [0, bound), unbiased; bound >= 1
  double Uniform();                // uniform in [0, 1), 53 bits
  double Normal();                 // standard normal (Box-Muller)

  // Fisher-Yates.
  template <typename T>
  void Shuffle(std::vector<T>& values) {
    for (uint64_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[Below(i)]);
  }

 private:
  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter block_{};
  int used_ = 4;
};

}  // namespace headlight
