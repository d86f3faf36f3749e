#include "headlight/analysis/attention_walk.h"

#include <algorithm>

#include "headlight/base/error.h"
#include "headlight/nn/probe.h"
#include "headlight/nn/ragged_batch.h"

namespace headlight {
namespace {

// Texts per forward pass: enough to fill the machine, few enough that their weights stay small.
constexpr size_t kTextsPerPass = 16;

}  // namespace

std::vector<AnalysedText> EncodeForAnalysis(const TextEncoder& encoder,
                                            std::span<const std::string> texts) {
  std::vector<AnalysedText> result;
  for (const std::string& text : texts) {
    const EncodedText encoded = encoder.EncodeWithTokens(text);
    if (encoded.ids.empty()) continue;
    AnalysedText analysed{encoded.ids, {}};
    for (const Token& token : encoded.tokens) analysed.tokens.push_back(token.text);
    result.push_back(std::move(analysed));
  }
  return result;
}

void WalkAttention(const TextClassifier& model, std::span<const AnalysedText> texts,
                   const std::function<void(const HeadView&)>& look) {
  if (model.dtype() != DType::kF32) {
    throw Error(ErrorKind::kShape, "attention walk: the model must be f32, found {}",
                DTypeName(model.dtype()));
  }
  for (size_t begin = 0; begin < texts.size(); begin += kTextsPerPass) {
    const auto part = texts.subspan(begin, std::min(kTextsPerPass, texts.size() - begin));
    std::vector<std::vector<int32_t>> sequences;
    for (const AnalysedText& text : part) sequences.push_back(text.ids);
    Probe probe;
    probe.want_weights = true;
    ForwardOptions options;
    options.probe = &probe;
    options.for_backward = false;
    model.Forward(MakeRaggedBatch(sequences), options, nullptr);
    std::stable_sort(
        probe.weights.begin(), probe.weights.end(),
        [](const ProbedWeights& a, const ProbedWeights& b) { return a.sequence < b.sequence; });
    for (const ProbedWeights& seen : probe.weights) {
      look({static_cast<int64_t>(begin) + seen.sequence, seen.layer, seen.head,
            seen.weights.view<float>()});
    }
  }
}

}  // namespace headlight
