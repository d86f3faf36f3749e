#include "headlight/train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "headlight/base/error.h"
#include "headlight/base/profiler.h"
#include "headlight/kernels/loss/cross_entropy.h"
#include "headlight/train/batching.h"

namespace headlight {
namespace {

ForwardOptions InferenceOptions(const EvaluateOptions& options) {
  ForwardOptions forward;
  forward.nonfinite = options.nonfinite;
  forward.for_backward = false;
  return forward;
}

// Runs the texts in order and hands each batch's logits [batch, classes] to `use`.
void ForEachBatch(const TextClassifier& model, const EncodedDataset& texts,
                  const EvaluateOptions& options,
                  const std::function<void(const RaggedBatch&, const Tensor&)>& use) {
  const EpochBatches batches =
      EpochBatches::InOrder(static_cast<int64_t>(texts.offsets.size()) - 1, options.batch);
  BatchBuilder builder;
  TextClassifier::Saved saved;
  for (int64_t i = 0; i < batches.size(); ++i) {
    const RaggedBatch& batch = builder.Fill(texts, batches[i]);
    use(batch, model.Forward(batch, InferenceOptions(options), &saved));
  }
}

[[noreturn]] void ThrowNonfinite(const TextClassifier& model, const RaggedBatch& batch,
                                 const EvaluateOptions& options) {
  NonfiniteReport report;
  const bool found = model.FindFirstNonfinite(batch, InferenceOptions(options), &report);
  throw Error(ErrorKind::kNumeric, "evaluation: the loss is not finite: {}",
              found ? report.ToString() : "in the loss itself");
}

template <typename T>
std::vector<double> SoftmaxOfRow(const Tensor& logits, int64_t row) {
  const T* values = logits.view<T>().row(row);
  const int64_t classes = logits.size(1);
  const double most = static_cast<double>(*std::max_element(values, values + classes));
  std::vector<double> probabilities(static_cast<size_t>(classes));
  double sum = 0;
  for (size_t c = 0; c < probabilities.size(); ++c) {
    probabilities[c] = std::exp(static_cast<double>(values[c]) - most);
    sum += probabilities[c];
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

Prediction MakePrediction(const TextEncoder& encoder, std::vector<double> probabilities) {
  const auto best = std::max_element(probabilities.begin(), probabilities.end());
  Prediction prediction;
  prediction.label = encoder.labels()[static_cast<size_t>(best - probabilities.begin())];
  prediction.probability = *best;
  prediction.probabilities = std::move(probabilities);
  return prediction;
}

}  // namespace

int32_t PredictedClass(const Tensor& logits, int64_t row) {
  return DispatchFloat(logits.dtype(), [&]<typename T>() {
    const T* values = logits.view<T>().row(row);
    return static_cast<int32_t>(std::max_element(values, values + logits.size(1)) - values);
  });
}

ClassificationMetrics Evaluate(const TextClassifier& model, const EncodedDataset& texts,
                               const EvaluateOptions& options) {
  const Zone zone(ZoneKind::kEvaluation, ZonePass::kForward);
  MetricsSum sum(model.config().classes);
  Tensor losses = Tensor::Uninitialized({options.batch}, model.dtype(), MemoryTag::kWorkspace);
  ForEachBatch(model, texts, options, [&](const RaggedBatch& batch, const Tensor& logits) {
    Tensor out = losses.Slice(0, 0, batch.batch());
    if (!std::isfinite(CrossEntropyForward(logits, batch.labels, {}, out))) {
      ThrowNonfinite(model, batch, options);
    }
    DispatchFloat(out.dtype(), [&]<typename T>() {
      for (int64_t i = 0; i < batch.batch(); ++i) {
        sum.Add(batch.labels[static_cast<size_t>(i)], PredictedClass(logits, i),
                static_cast<double>(out.data<T>()[i]));
      }
    });
  });
  return sum.Result();
}

std::vector<Prediction> Predict(const TextClassifier& model, const TextEncoder& encoder,
                                std::span<const std::string> texts,
                                const EvaluateOptions& options) {
  EncodedDataset encoded;
  std::vector<int64_t> unknown;
  for (const std::string& text : texts) {
    const std::vector<int32_t> ids = encoder.Encode(text);
    encoded.ids.insert(encoded.ids.end(), ids.begin(), ids.end());
    encoded.offsets.push_back(static_cast<int64_t>(encoded.ids.size()));
    encoded.rows.push_back(static_cast<int64_t>(encoded.rows.size()));
    unknown.push_back(std::count(ids.begin(), ids.end(), Vocabulary::kUnknown));
  }
  std::vector<Prediction> predictions;
  ForEachBatch(model, encoded, options, [&](const RaggedBatch& batch, const Tensor& logits) {
    for (int64_t i = 0; i < batch.batch(); ++i) {
      std::vector<double> probabilities =
          DispatchFloat(logits.dtype(), [&]<typename T>() { return SoftmaxOfRow<T>(logits, i); });
      if (!std::isfinite(probabilities[0])) ThrowNonfinite(model, batch, options);
      Prediction prediction = MakePrediction(encoder, std::move(probabilities));
      prediction.tokens = batch.layout().length(i);
      prediction.unknown_tokens = unknown[predictions.size()];
      predictions.push_back(std::move(prediction));
    }
  });
  return predictions;
}

}  // namespace headlight
