// Evaluation and prediction: forward passes without dropout. A text's numbers do not depend on the
// batch that it is in.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headlight/models/text_classifier.h"
#include "headlight/nn/options.h"
#include "headlight/text/text_encoder.h"
#include "headlight/train/metrics.h"

namespace headlight {

struct EvaluateOptions {
  int64_t batch = 64;
  NonfinitePolicy nonfinite = NonfinitePolicy::kPropagate;
};

// Throws kNumeric, naming the tensor, when a loss is not finite.
ClassificationMetrics Evaluate(const TextClassifier& model, const EncodedDataset& texts,
                               const EvaluateOptions& options);

// The class with the largest logit of a row, the first of equals.
int32_t PredictedClass(const Tensor& logits, int64_t row);

struct Prediction {
  std::string label;                  // the most probable; the first of equals
  double probability = 0;             // its own
  std::vector<double> probabilities;  // by label, in the order of TextEncoder::labels(); sum 1
  int64_t tokens = 0;          // read; 0 for a text that holds none (its label means nothing)
  int64_t unknown_tokens = 0;  // of them
};

std::vector<Prediction> Predict(const TextClassifier& model, const TextEncoder& encoder,
                                std::span<const std::string> texts, const EvaluateOptions& options);

}  // namespace headlight
