// Finding the first non-finite value of a text classifier: a rerun of the pass with a probe that
// looks at every tensor, so that training itself pays nothing for it.
#include <array>
#include <cmath>
#include <string_view>

#include "headlight/base/error.h"
#include "headlight/models/text_classifier.h"

namespace headlight {
namespace {

// "encoder.3.attention.query.weight" -> 3; -1 outside of the blocks.
int LayerOfName(std::string_view name) {
  constexpr std::string_view kPrefix = "encoder.";
  if (!name.starts_with(kPrefix)) return -1;
  int layer = 0;
  for (const char c : name.substr(kPrefix.size())) {
    if (c < '0' || c > '9') break;
    layer = layer * 10 + (c - '0');
  }
  return layer;
}

// Parameters whose first axis goes by heads: the head of row `row`, else -1.
int HeadOfRow(std::string_view name, int64_t row, const TextClassifierConfig& config) {
  for (const char* part : {".attention.query.", ".attention.key."}) {
    if (name.find(part) != std::string_view::npos) return static_cast<int>(row / config.QueryDim());
  }
  if (name.find(".attention.value.") != std::string_view::npos) {
    return static_cast<int>(row / config.HeadDim());
  }
  if (name.find(".attention.relative_") != std::string_view::npos) return static_cast<int>(row);
  return -1;
}

struct Found {
  std::array<int64_t, 3> index{};
  double value = 0;
};

// The first non-finite value of a tensor of up to three axes, in order of its indices.
bool FindNonfinite(const Tensor& tensor, Found* found) {
  if (tensor.elements() == 0) return false;
  std::array<int64_t, 3> size{1, 1, 1}, step{0, 0, 0};
  for (int axis = 0; axis < tensor.shape().rank() && axis < 3; ++axis) {
    size[static_cast<size_t>(axis)] = tensor.size(axis);
    step[static_cast<size_t>(axis)] = tensor.stride(axis);
  }
  return DispatchFloat(tensor.dtype(), [&]<typename T>() {
    const T* data = tensor.data<T>();
    for (int64_t i = 0; i < size[0]; ++i) {
      for (int64_t j = 0; j < size[1]; ++j) {
        for (int64_t k = 0; k < size[2]; ++k) {
          const T value = data[i * step[0] + j * step[1] + k * step[2]];
          if (std::isfinite(value)) continue;
          *found = {{i, j, k}, static_cast<double>(value)};
          return true;
        }
      }
    }
    return false;
  });
}

bool FindInParameter(const Parameter& parameter, const Tensor& values,
                     const TextClassifierConfig& config, NonfiniteReport* report) {
  Found found;
  if (!FindNonfinite(values, &found)) return false;
  *report = {.layer = LayerOfName(parameter.name),
             .head = HeadOfRow(parameter.name, found.index[0], config),
             .tensor = parameter.name,
             .row = found.index[0],
             .value = found.value};
  return true;
}

// Sequence of row `row` of a tensor with one row per token or per sequence.
int64_t SequenceOfRow(const RaggedBatch& batch, int64_t rows, int64_t row) {
  if (rows != batch.tokens()) return row;
  int64_t sequence = 0;
  while (sequence + 1 < batch.batch() && batch.layout().begin(sequence + 1) <= row) ++sequence;
  return sequence;
}

}  // namespace

std::string NonfiniteReport::ToString() const {
  std::string text;
  if (layer >= 0) text += fmt::format("layer {}, ", layer);
  if (head >= 0) text += fmt::format("head {}, ", head);
  text += fmt::format("tensor {}", tensor);
  if (sequence >= 0) text += fmt::format(", sequence {}", sequence);
  if (row >= 0) text += fmt::format(", row {}", row);
  return text + fmt::format(": {}", value);
}

bool TextClassifier::FindFirstNonfinite(const RaggedBatch& batch, const ForwardOptions& options,
                                        NonfiniteReport* report) const {
  for (const Parameter* parameter : Parameters()) {
    if (FindInParameter(*parameter, parameter->value, config(), report)) return true;
  }
  bool seen = false;
  Probe probe;
  probe.on_tensor = [&](int layer, const char* name, const Tensor& values) {
    Found found;
    if (seen || !FindNonfinite(values, &found)) return;
    seen = true;
    *report = {.layer = layer,
               .head = values.shape().rank() == 3 ? static_cast<int>(found.index[1]) : -1,
               .tensor = name,
               .sequence = SequenceOfRow(batch, values.size(0), found.index[0]),
               .row = found.index[0],
               .value = found.value};
  };
  ForwardOptions watched = options;
  watched.probe = &probe;
  Forward(batch, watched, nullptr);
  return seen;
}

bool TextClassifier::FindFirstNonfiniteGradient(NonfiniteReport* report) const {
  const std::vector<const Parameter*> parameters = Parameters();
  for (size_t i = parameters.size(); i-- > 0;) {
    if (!FindInParameter(*parameters[i], parameters[i]->gradient, config(), report)) continue;
    report->tensor = "gradient of " + report->tensor;
    return true;
  }
  return false;
}

}  // namespace headlight
