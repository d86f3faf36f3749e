#include "headlight/report/attention_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "headlight/base/error.h"
#include "headlight/report/attention_json.h"
#include "headlight/report/escape.h"

namespace headlight {

void CheckAttentionPicture(const AttentionPicture& picture) {
  const auto require = [](bool holds, const char* rule) {
    if (!holds) throw Error(ErrorKind::kInternal, "attention picture: {}", rule);
  };
  const size_t n = picture.tokens.size();
  require(picture.layers > 0 && picture.heads > 0, "must have layers and heads");
  require(picture.weights.size() == static_cast<size_t>(picture.layers),
          "must have weights of every layer");
  for (const auto& layer : picture.weights) {
    require(layer.size() == static_cast<size_t>(picture.heads), "must have weights of every head");
    for (const auto& head : layer) require(head.size() == n * n, "a head must have n * n weights");
  }
  if (picture.figures.empty()) return;
  require(picture.figures.size() == static_cast<size_t>(picture.layers),
          "must have figures of every layer, or none");
  for (const auto& layer : picture.figures) {
    require(layer.size() == static_cast<size_t>(picture.heads), "must have figures of every head");
  }
}

void CheckAttentionPlace(const AttentionPicture& picture, int64_t layer, int64_t head) {
  CheckAttentionPicture(picture);
  if (picture.tokens.empty()) {
    throw Error(ErrorKind::kUsage, "attention picture: the text must have a token");
  }
  if (layer < 0 || layer >= picture.layers || head < 0 || head >= picture.heads) {
    throw Error(
        ErrorKind::kUsage,
        "attention picture: the layer must be 0 to {} and the head 0 to {}, found {} and {}",
        picture.layers - 1, picture.heads - 1, layer, head);
  }
}

std::string AttentionAsCsv(const AttentionPicture& picture, const HeadChoice& choice) {
  CheckAttentionPicture(picture);
  std::string text = "layer,head,query,key,query_token,key_token,weight\r\n";
  const size_t n = picture.tokens.size();
  std::vector<std::string> fields;
  for (const std::string& token : picture.tokens) fields.push_back(CsvField(token));
  for (int64_t layer = 0; layer < picture.layers; ++layer) {
    for (int64_t head = 0; head < picture.heads; ++head) {
      if (!choice.Takes(layer, head)) continue;
      const std::vector<float>& weights = picture.At(layer, head);
      for (size_t i = 0; i < n * n; ++i) {
        text += fmt::format("{},{},{},{},{},{},{}\r\n", layer, head, i / n, i % n, fields[i / n],
                            fields[i % n], weights[i]);
      }
    }
  }
  return text;
}

std::string AttentionAsJson(const AttentionPicture& picture, const HeadChoice& choice) {
  return AttentionJson(picture, /*digits=*/0, choice);
}

namespace {

template <typename Range, typename Function>
std::string JsonArray(const Range& range, const Function& element) {
  std::string text = "[";
  for (const auto& item : range) {
    if (text.size() > 1) text += ",";
    text += element(item);
  }
  return text + "]";
}

std::string NamedValue(const std::pair<std::string, double>& value) {
  return fmt::format("[{},{}]", JsonString(value.first), JsonNumber(value.second));
}

std::string FiguresJson(const HeadFigures& figures) {
  return fmt::format(R"({{"entropy":{},"mean_distance":{},"max_distance":{},"role":{},"more":{}}})",
                     JsonNumber(figures.entropy), JsonNumber(figures.mean_distance),
                     JsonNumber(figures.max_distance), JsonString(figures.role),
                     JsonArray(figures.more, NamedValue));
}

}  // namespace

std::string AttentionJson(const AttentionPicture& picture, int digits, const HeadChoice& choice) {
  CheckAttentionPicture(picture);
  const auto weight = [digits](float value) -> std::string {
    if (!(value - value == 0)) return "null";  // JSON has no nan or inf
    return digits > 0 ? fmt::format("{:.{}g}", value, digits) : fmt::format("{}", value);
  };
  const auto head = [&](const std::vector<float>& weights) { return JsonArray(weights, weight); };
  const auto layer = [&](const auto& heads) { return JsonArray(choice.Heads(heads), head); };
  const auto figures = [&](const auto& heads) {
    return JsonArray(choice.Heads(heads), FiguresJson);
  };
  return fmt::format(
      "{{\"format_version\":1,\"run\":{},\"text\":{},\n\"tokens\":{},\n\"layers\":{},\"heads\":{},"
      "\"first_layer\":{},\"first_head\":{},\n\"prediction\":{},\n\"figures\":{},\n\"weights\":{}}}"
      "\n",
      JsonString(picture.run), JsonString(picture.text), JsonArray(picture.tokens, JsonString),
      choice.layer < 0 ? picture.layers : 1, choice.head < 0 ? picture.heads : 1,
      std::max(choice.layer, int64_t{0}), std::max(choice.head, int64_t{0}),
      JsonArray(picture.prediction, NamedValue), JsonArray(choice.Layers(picture.figures), figures),
      JsonArray(choice.Layers(picture.weights), layer));
}

}  // namespace headlight
