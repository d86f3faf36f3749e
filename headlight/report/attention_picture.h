// The attention of one text, as pictures and pages take it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "headlight/report/table.h"

namespace headlight {

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

// The weights as text files. CSV: layer,head,query,key,query_token,key_token,weight, layers,
// heads and tokens counted from 0, as in the names of parameters. Floats with all their
// digits.
std::string AttentionAsCsv(const AttentionPicture& picture);
// The object that the page embeds too: {"format_version", "text", "tokens", "layers", "heads",
// "weights", "figures", "prediction", "run"}.
std::string AttentionAsJson(const AttentionPicture& picture);

}  // namespace headlight
