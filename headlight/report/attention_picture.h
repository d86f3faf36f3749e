// The attention of one text, as pictures and pages take it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headlight/report/table.h"

namespace headlight {

// Some heads of a picture: one or all layers, one or all heads of them.
struct HeadChoice {
  int64_t layer = -1;  // from 0; -1: all
  int64_t head = -1;

  bool Takes(int64_t of_layer, int64_t of_head) const {
    return (layer < 0 || layer == of_layer) && (head < 0 || head == of_head);
  }
  // What there is of each layer, or of each head of a layer (or nothing, for none): the chosen
  // part.
  template <typename T>
  std::span<const T> Layers(const std::vector<T>& all) const {
    return Chosen(all, layer);
  }
  template <typename T>
  std::span<const T> Heads(const std::vector<T>& all) const {
    return Chosen(all, head);
  }

 private:
  template <typename T>
  static std::span<const T> Chosen(const std::vector<T>& all, int64_t index) {
    if (index < 0 || all.empty()) return all;
    return std::span<const T>(all).subspan(static_cast<size_t>(index), 1);
  }
};

struct HeadFigures {
  double entropy = 0;        // nats, mean over the queries
  double mean_distance = 0;  // tokens, expected |query - key|
  double max_distance = 0;   // tokens, largest |query - heaviest key|
  std::string role;          // "pronoun", "neighbour", ...; empty when not known
  // More of the caller's, shown as they come: {"share on first token", 0.12}.
  std::vector<std::pair<std::string, double>> more;
};

struct AttentionPicture {
  std::string text;                 // the sentence
  std::vector<std::string> tokens;  // n
  int64_t layers = 0;
  int64_t heads = 0;
  // weights[layer][head]: n * n, row = query, rows sum to 1.
  std::vector<std::vector<std::vector<float>>> weights;
  std::vector<std::vector<HeadFigures>> figures;  // [layer][head]; may be empty
  // What the model said: {"positive", 0.93}, best first; may be empty.
  std::vector<std::pair<std::string, double>> prediction;
  std::string run;  // where it comes from, for the page's heading

  const std::vector<float>& At(int64_t layer, int64_t head) const {
    return weights[static_cast<size_t>(layer)][static_cast<size_t>(head)];
  }
};

// Throws kInternal when sizes do not fit together.
void CheckAttentionPicture(const AttentionPicture& picture);

// The same, and throws kUsage when there is no such layer or head (from 0), or no token to show.
void CheckAttentionPlace(const AttentionPicture& picture, int64_t layer, int64_t head);

// The weights of the chosen heads as text files. CSV: layer,head,query,key,query_token,key_token,
// weight, layers, heads and tokens counted from 0, as in the names of parameters. Floats with all
// their digits.
std::string AttentionAsCsv(const AttentionPicture& picture, const HeadChoice& choice = {});
// The object that the page embeds too: {"format_version", "text", "tokens", "layers", "heads",
// "first_layer", "first_head", "weights", "figures", "prediction", "run"}: so many layers and
// heads, and the numbers of the first.
std::string AttentionAsJson(const AttentionPicture& picture, const HeadChoice& choice = {});

}  // namespace headlight
