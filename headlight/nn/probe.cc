#include "headlight/nn/probe.h"

#include <algorithm>

namespace headlight {

bool Probe::Wants(int layer, int head) const {
  const auto holds = [](const std::vector<int>& list, int value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  return (want_weights || want_statistics) && holds(layers, layer) && holds(heads, head);
}

}  // namespace headlight
