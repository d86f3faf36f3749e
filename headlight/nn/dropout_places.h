// Every place of a model that drops has a number of its own, which keys its random numbers.
#pragma once

#include <cstdint>

namespace headlight {

enum DropoutSite { kDropAttentionBranch, kDropFeedForwardBranch, kDropWeights };
inline constexpr int64_t kEmbeddingDropoutPlace = 0;

constexpr int64_t DropoutPlace(int layer, DropoutSite site) {
  return 1 + 3 * int64_t{layer} + static_cast<int64_t>(site);
}

}  // namespace headlight
