// Running a model over texts and looking at every head's attention weights, one text at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "headlight/models/text_classifier.h"
#include "headlight/text/text_encoder.h"

namespace headlight {

struct AnalysedText {
  std::vector<int32_t> ids;
  std::vector<std::string> tokens;  // of the same length
};

// The texts as the model reads them (cut at its max_len); texts without a token are left out.
std::vector<AnalysedText> EncodeForAnalysis(const TextEncoder& encoder,
                                            std::span<const std::string> texts);

// The weights of one head on one text: [tokens, tokens], row = query.
struct HeadView {
  int64_t text = 0;
  int layer = 0;
  int head = 0;
  View<const float> weights;
};

// Calls `look` for every text, layer and head, texts in order. The memory taken does not grow with
// the number of texts. The model must be f32.
void WalkAttention(const TextClassifier& model, std::span<const AnalysedText> texts,
                   const std::function<void(const HeadView&)>& look);

}  // namespace headlight
