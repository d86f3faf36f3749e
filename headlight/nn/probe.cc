#include "headlight/nn/probe.h"

#include <algorithm>

namespace headlight {
namespace {

bool HoldsOrIsEmpty(const std::vector<int>& list, int value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

bool Probe::WantsLayer(int layer) const { return HoldsOrIsEmpty(layers, layer); }
bool Probe::WantsHead(int head) const { return HoldsOrIsEmpty(heads, head); }

}  // namespace headlight
