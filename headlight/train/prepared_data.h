// A run's text, read, split and encoded once, before the first step.
#pragma once

#include <cstdint>
#include <string>

#include "headlight/text/dataset.h"
#include "headlight/text/text_encoder.h"
#include "headlight/train/config.h"

namespace headlight {

struct PreparedData {
  TextEncoder encoder;  // vocabulary and labels from the training texts alone
  EncodedDataset train;
  EncodedDataset valid;
  // Of ids, lengths and labels of both: a run resumes only on the very data that it began on.
  uint64_t fingerprint = 0;
};

// Reads what config.data names. Validation text is config.data.valid, else the valid part that the
// data themselves have (an archive with train/ and valid/), else a stratified share of them that
// holds no text of the rest. Texts without a token and rows without a label are skipped and counted
// (EncodedDataset::skipped). Throws kInput for data that nothing can be learned from: no rows, one
// class only, a validation label that training lacks.
PreparedData PrepareData(const TrainConfig& config);
// The same from texts in memory.
PreparedData PrepareData(const Dataset& train, const Dataset& valid,
                         const TextEncoderOptions& options);

// Texts of a file for a model that exists: `eval --data`. Of data with parts the valid one, else
// the test one.
Dataset ReadEvaluationData(const std::vector<std::string>& paths, const ReadOptions& options);

// Whether PrepareData gives the same for both: grids of runs prepare their data once.
bool SameData(const TrainConfig& a, const TrainConfig& b);

}  // namespace headlight
