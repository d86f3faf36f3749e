#include "headlight/report/attention_report.h"

#include <algorithm>

#include "headlight/analysis/head_summary.h"
#include "headlight/analysis/roles.h"
#include "headlight/base/error.h"
#include "headlight/io/npy.h"
#include "headlight/train/evaluate.h"

namespace headlight {
namespace {

HeadFigures FiguresOf(const HeadSummary& summary) {
  HeadFigures figures;
  figures.entropy = summary.entropy;
  figures.mean_distance = summary.mean_distance;
  figures.max_distance = summary.max_distance;
  figures.role = HeadRoleName(NameRole(summary, {}, {}).role);
  figures.more = {{"share on first token", summary.first},
                  {"share on punctuation", summary.punctuation},
                  {"share on previous token", summary.previous},
                  {"share on next token", summary.next}};
  return figures;
}

void AddPrediction(const TextClassifier& model, const TextEncoder& encoder,
                   AttentionPicture& picture) {
  const Prediction prediction = Predict(model, encoder, {&picture.text, 1}, {}).front();
  for (size_t i = 0; i < encoder.labels().size(); ++i) {
    picture.prediction.emplace_back(encoder.labels()[i], prediction.probabilities[i]);
  }
  std::stable_sort(picture.prediction.begin(), picture.prediction.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
}

}  // namespace

AttentionPicture MakeAttentionPicture(const TextClassifier& model, const TextEncoder& encoder,
                                      const std::string& text, const std::string& run) {
  AttentionPicture picture;
  picture.text = text;
  picture.run = run;
  picture.layers = model.config().layers;
  picture.heads = model.config().heads;
  const std::vector<AnalysedText> texts = EncodeForAnalysis(encoder, {&text, 1});
  if (texts.empty()) throw Error(ErrorKind::kInput, "show: the text has no token");
  picture.tokens = texts.front().tokens;
  picture.weights.assign(static_cast<size_t>(picture.layers),
                         std::vector<std::vector<float>>(static_cast<size_t>(picture.heads)));
  WalkAttention(model, texts, [&picture](const HeadView& seen) {
    auto& target = picture.weights[static_cast<size_t>(seen.layer)][static_cast<size_t>(seen.head)];
    for (int64_t query = 0; query < seen.weights.size(0); ++query) {
      target.insert(target.end(), seen.weights.row(query),
                    seen.weights.row(query) + seen.weights.size(1));
    }
  });
  if (picture.tokens.size() > 1) {
    picture.figures.resize(static_cast<size_t>(picture.layers));
    for (const HeadSummary& summary : SummarizeHeads(model, texts)) {
      picture.figures[static_cast<size_t>(summary.layer)].push_back(FiguresOf(summary));
    }
  }
  AddPrediction(model, encoder, picture);
  return picture;
}

std::string AttentionAsNpy(const AttentionPicture& picture, const HeadChoice& choice) {
  const auto tokens = static_cast<int64_t>(picture.tokens.size());
  Tensor array = Tensor::Zeros(
      {choice.layer < 0 ? picture.layers : 1, choice.head < 0 ? picture.heads : 1, tokens, tokens},
      DType::kF32, MemoryTag::kOther);
  float* target = array.data<float>();
  for (const auto& layer : choice.Layers(picture.weights)) {
    for (const auto& head : choice.Heads(layer))
      target = std::copy(head.begin(), head.end(), target);
  }
  return SerializeNpy(array);
}

}  // namespace headlight
