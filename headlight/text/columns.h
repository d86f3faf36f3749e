// Which column of a table is the text and which is the label.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "headlight/io/csv.h"
#include "headlight/text/readers.h"

namespace headlight {

// What the cells of one column look like, a possible header row apart.
class ColumnFacts {
 public:
  void Add(std::string_view cell);

  // Distinct values; kMany and no more once there are that many or one is long.
  int64_t distinct() const { return too_many_ ? kMany : static_cast<int64_t>(values_.size()); }
  double mean_bytes() const {
    return cells_ == 0 ? 0 : static_cast<double>(bytes_) / static_cast<double>(cells_);
  }
  bool all_numbers() const { return cells_ > 0 && numbers_ == cells_; }
  bool is_label_like() const { return !too_many_ && !values_.empty(); }

  static constexpr int64_t kMany = 2000;
  static constexpr size_t kLongestLabel = 200;  // bytes

 private:
  std::unordered_set<std::string> values_;
  bool too_many_ = false;
  int64_t cells_ = 0;
  int64_t bytes_ = 0;
  int64_t numbers_ = 0;
};

struct ColumnChoice {
  size_t text = 0;
  size_t label = 0;
  bool has_header = false;
};

// `first` is the first row; `facts` has one entry per column, about all rows but the first. Throws
// kInput, with `name`, for a column that is not there, whose name another column of the header has
// too, or when the choice is not clear.
ColumnChoice ChooseColumns(const CsvRecord& first, const std::vector<ColumnFacts>& facts,
                           const ReadOptions& options, const std::string& name);

// The usual name that comes first in its list, among `names`; -1 when none is there.
int FindTextName(const std::vector<std::string>& names);
int FindLabelName(const std::vector<std::string>& names);

}  // namespace headlight
