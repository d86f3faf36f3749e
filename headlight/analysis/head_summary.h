// What a head does on average, over many texts, without knowing any grammar.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headlight/analysis/attention_walk.h"

namespace headlight {

// Means are over all queries of all texts; shares are of attention mass and lie in [0, 1]. A
// distance is in tokens. Texts of one token say nothing about a head and are left out.
struct HeadSummary {
  int layer = 0;
  int head = 0;
  int64_t queries = 0;

  double entropy = 0;           // natural log
  double relative_entropy = 0;  // entropy / log(number of keys): 1 is uniform, 0 is one key
  double mean_distance = 0;     // sum over keys of weight x |query - key|
  double argmax_distance = 0;   // mean |query - key| at the largest weight
  double max_distance = 0;      // the largest of those
  double largest_weight = 0;    // mean of each query's largest weight

  double first = 0;        // on the text's first token
  double punctuation = 0;  // on punctuation tokens
  double previous = 0;     // on the token before
  double next = 0;         // on the token after
  double self = 0;         // on the token itself
  // What a uniform head would put there, on the same texts.
  double uniform_first = 0;
  double uniform_punctuation = 0;
  double uniform_neighbour = 0;  // previous, next

  // Mean total variation distance between a query's weights and the text's mean row: 0 means that
  // every query of a text attends in the same way, so that the head does not select by query.
  double query_dependence = 0;
};

// One summary per layer and head, in that order. Throws kInput when no text has two tokens.
std::vector<HeadSummary> SummarizeHeads(const TextClassifier& model,
                                        std::span<const AnalysedText> texts);

}  // namespace headlight
