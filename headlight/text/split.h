// Training and validation parts of one dataset, and their text as files.
#pragma once

#include <cstdint>
#include <string>

#include "headlight/text/dataset.h"
#include "headlight/text/readers.h"

namespace headlight {

struct SplitOptions {
  double valid_share = 0.2;  // of each label; in (0, 1)
  uint64_t seed = 1;
};

struct TrainValid {
  Dataset train;
  Dataset valid;
};

// Every label is split in the same proportion (rounded; at least one row on each side where the
// label has two different texts). All copies of a text (by TextKey) go to one side, so no text is
// in both. Rows keep their order; what was dropped before counts to train. The same seed and rows
// give the same parts. Throws kUsage for a share out of range, kInput when a side would be empty.
TrainValid StratifiedSplit(const Dataset& dataset, const SplitOptions& options);

// The rows as CSV (header "text,label"; CRLF-free; quotes where needed) or JSONL, which the readers
// read back as the same texts and labels. Throws kUsage for another format, and kInput for broken
// UTF-8 in JSONL, which cannot hold it.
std::string FormatDataset(const Dataset& dataset, DataFormat format);

}  // namespace headlight
