// The grid of a comparison: every combination of the varied choices, times the seeds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headlight {

// One varied flag of `train` and its values, in the order given.
struct Variation {
  std::string name;  // without dashes: "heads"
  std::vector<std::string> values;
};

// "heads=1,2,4,8". Throws kUsage for an empty name or value and for a value named twice.
Variation ParseVariation(std::string_view text);

using Choices =
    std::vector<std::pair<std::string, std::string>>;  // (name, value), one per variation

// All combinations; the last variation changes fastest. No variation gives one empty combination.
// Throws kUsage when a name is varied twice or there are more than 10,000 combinations.
std::vector<Choices> ExpandGrid(const std::vector<Variation>& variations);

// "heads=4 norm=pre"; "all defaults" for no choices.
std::string ChoicesLabel(const Choices& choices);

// The directory of a cell: "heads-4_norm-pre_seed-1"; characters beyond [A-Za-z0-9.-] become '-'.
std::string CellName(const Choices& choices, uint64_t seed);

}  // namespace headlight
