#include "headlight/train/prepared_data.h"

#include <cstddef>
#include <span>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/base/fingerprint.h"
#include "headlight/text/split.h"
#include "headlight/train/config_field.h"

namespace headlight {
namespace {

uint64_t FingerprintOf(const EncodedDataset& train, const EncodedDataset& valid) {
  Fingerprint fingerprint;
  for (const EncodedDataset* part : {&train, &valid}) {
    fingerprint.Add(part->ids);
    fingerprint.Add(part->offsets);
    fingerprint.Add(part->labels);
    fingerprint.Add(part->rows);
  }
  return fingerprint.value();
}

void CheckPart(const EncodedDataset& part, const char* name) {
  if (part.size() > 0) return;
  throw Error(ErrorKind::kInput,
              "{}: no text is left to use ({} skipped: without a token or without a label)", name,
              part.skipped);
}

}  // namespace

PreparedData PrepareData(const Dataset& train, const Dataset& valid,
                         const TextEncoderOptions& options) {
  TextEncoder encoder = TextEncoder::Build(train, options);
  EncodedDataset train_texts = encoder.EncodeDataset(train);
  EncodedDataset valid_texts = encoder.EncodeDataset(valid);
  CheckPart(train_texts, "training data");
  CheckPart(valid_texts, "validation data");
  const uint64_t fingerprint = FingerprintOf(train_texts, valid_texts);
  return {std::move(encoder), std::move(train_texts), std::move(valid_texts), fingerprint};
}

PreparedData PrepareData(const TrainConfig& config) {
  const DataChoices& data = config.data;
  if (!data.valid.empty()) {
    return PrepareData(ReadDataset(data.data, data.read), ReadEvaluationData(data.valid, data.read),
                       config.text);
  }
  DatasetParts parts = ReadDatasetParts(data.data, data.read);
  if (parts.train.examples.empty()) {
    throw Error(ErrorKind::kInput, "training data: no rows in {}", data.data.front());
  }
  if (!parts.valid.examples.empty()) return PrepareData(parts.train, parts.valid, config.text);
  const SplitOptions split{data.valid_share, static_cast<uint64_t>(data.split_seed)};
  // Rows that cannot be used must not take part in the split's shares.
  const int64_t dropped = DropUnusable(&parts.train);
  const TrainValid both = StratifiedSplit(parts.train, split);
  PreparedData prepared = PrepareData(both.train, both.valid, config.text);
  prepared.train.skipped += dropped;
  return prepared;
}

Dataset ReadEvaluationData(const std::vector<std::string>& paths, const ReadOptions& options) {
  DatasetParts parts = ReadDatasetParts(paths, options);
  for (Dataset* part : {&parts.valid, &parts.test}) {
    if (!part->examples.empty()) return std::move(*part);
  }
  return std::move(parts.train);
}

bool SameData(const TrainConfig& a, const TrainConfig& b) {
  for (const ConfigField& field : TrainFields()) {
    const bool matters = field.section == "data" || field.section == "text";
    if (matters && field.get(a) != field.get(b)) return false;
  }
  return true;
}

}  // namespace headlight
