// Any bytes as each format of single files, and through detection; what was read can be described,
// written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "headlight/base/error.h"
#include "headlight/text/describe.h"
#include "headlight/text/layout.h"
#include "headlight/text/readers.h"
#include "headlight/text/split.h"

namespace {

using headlight::DataFormat;
using headlight::Dataset;

void CheckRoundTrip(const Dataset& dataset) {
  const std::string csv = headlight::FormatDataset(dataset, DataFormat::kCsv);
  const Dataset read = headlight::ParseDataset(csv, "fuzz", DataFormat::kCsv, {});
  if (read.examples.size() != dataset.examples.size()) std::abort();
  for (size_t i = 0; i < read.examples.size(); ++i) {
    if (read.examples[i].text != dataset.examples[i].text) std::abort();
    if (read.examples[i].label != dataset.examples[i].label) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(data, data + size);
  for (const DataFormat format :
       {DataFormat::kAuto, DataFormat::kCsv, DataFormat::kTsv, DataFormat::kJsonl,
        DataFormat::kLabelText, DataFormat::kTextLabel}) {
    try {
      const Dataset dataset = headlight::ParseDataset(bytes, "fuzz", format, {});
      if (dataset.examples.empty()) std::abort();
      if (format != DataFormat::kAuto) CheckRoundTrip(dataset);
      if (format == DataFormat::kAuto) headlight::Describe(dataset, &dataset, {});
    } catch (const headlight::Error&) {
    }
  }
  return 0;
}
