#include "headlight/analysis/relation_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/base/random.h"

namespace headlight {
namespace {

// Per text: how many queries, and what they scored in all.
struct TextTotal {
  double queries = 0;
  double score = 0;

  void Add(double of_a_query) {
    queries += 1;
    score += of_a_query;
  }
};

// The gold keys of one query, for one relation and direction.
struct GoldQuery {
  int64_t query = 0;
  std::vector<int64_t> keys;  // ascending
};

using GoldQueries = std::vector<GoldQuery>;
constexpr size_t kKinds = static_cast<size_t>(kRelationKinds) * kRelationDirections;

size_t KindIndex(RelationKind relation, RelationDirection direction) {
  return static_cast<size_t>(relation) * kRelationDirections + static_cast<size_t>(direction);
}

std::array<GoldQueries, kKinds> QueriesOf(const GoldText& text) {
  std::array<std::map<int64_t, std::vector<int64_t>>, kKinds> keys;
  for (const GoldRelation& relation : text.relations) {
    for (int64_t to = relation.to_begin; to < relation.to_end; ++to) {
      keys[KindIndex(relation.kind, RelationDirection::kForward)][relation.from].push_back(to);
      keys[KindIndex(relation.kind, RelationDirection::kBackward)][to].push_back(relation.from);
    }
  }
  std::array<GoldQueries, kKinds> result;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    for (auto& [query, gold] : keys[kind]) {
      std::sort(gold.begin(), gold.end());
      gold.erase(std::unique(gold.begin(), gold.end()), gold.end());
      result[kind].push_back({query, gold});
    }
  }
  return result;
}

bool Contains(const std::vector<int64_t>& keys, int64_t key) {
  return std::binary_search(keys.begin(), keys.end(), key);
}

// The point of the standard normal that |z| exceeds with probability `alpha`.
double NormalPoint(double alpha) {
  double low = 0, high = 10;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) > alpha ? low : high) = middle;
  }
  return (low + high) / 2;
}

// A share (of the queries of all texts) and its standard error.
struct Estimate {
  double share = 0;
  double error = 1;
};

Estimate EstimateOf(std::span<const TextTotal> totals) {
  double queries = 0, score = 0;
  for (const TextTotal& total : totals) {
    queries += total.queries;
    score += total.score;
  }
  Estimate estimate;
  estimate.share = score / queries;
  if (totals.size() < 2) return estimate;
  double squares = 0;
  for (const TextTotal& total : totals) {
    const double residual = total.score - estimate.share * total.queries;
    squares += residual * residual;
  }
  const auto texts = static_cast<double>(totals.size());
  estimate.error = std::sqrt(squares * texts / (texts - 1)) / queries;
  return estimate;
}

ShareInterval IntervalOf(std::span<const TextTotal> totals, double z) {
  const Estimate estimate = EstimateOf(totals);
  return {.share = estimate.share,
          .low = std::max(0.0, estimate.share - z * estimate.error),
          .high = std::min(1.0, estimate.share + z * estimate.error)};
}

// The best fixed offset for one relation and direction.
struct OffsetBaseline {
  int64_t offset = 0;
  std::vector<TextTotal> totals;
};

OffsetBaseline BestOffset(std::span<const std::array<GoldQueries, kKinds>> gold, size_t kind) {
  std::map<int64_t, int64_t> hits;
  for (const auto& text : gold) {
    for (const GoldQuery& query : text[kind]) {
      for (int64_t key : query.keys) ++hits[key - query.query];
    }
  }
  OffsetBaseline best;
  int64_t most = -1;
  for (const auto& [offset, count] : hits) {
    if (count > most) {
      most = count;
      best.offset = offset;
    }
  }
  for (const auto& text : gold) {
    TextTotal total;
    for (const GoldQuery& query : text[kind]) {
      total.Add(Contains(query.keys, query.query + best.offset) ? 1 : 0);
    }
    if (total.queries > 0) best.totals.push_back(total);
  }
  return best;
}

// What one head scored, per text, for every kind.
struct HeadTotals {
  std::array<std::vector<TextTotal>, kKinds> mass;
  std::array<std::vector<TextTotal>, kKinds> top1;
  std::array<std::vector<TextTotal>, kKinds> other_queries;  // of the same keys
  // Of all hits together, were each query any token of its text.
  std::array<double, kKinds> chance_variance = {};

  void Add(const View<const float>& weights, const std::array<GoldQueries, kKinds>& gold) {
    const int64_t tokens = weights.size(0);
    std::vector<int64_t> best(static_cast<size_t>(tokens));
    std::vector<int64_t> looks(static_cast<size_t>(weights.size(1)));  // at each key, of all tokens
    for (int64_t query = 0; query < tokens; ++query) {
      const float* row = weights.row(query);
      const int64_t key = std::max_element(row, row + weights.size(1)) - row;
      best[static_cast<size_t>(query)] = key;
      ++looks[static_cast<size_t>(key)];
    }
    const double others = std::max<double>(1, static_cast<double>(tokens - 1));
    for (size_t kind = 0; kind < kKinds; ++kind) {
      if (gold[kind].empty()) continue;
      TextTotal text_mass, text_top1, text_others;
      for (const GoldQuery& query : gold[kind]) {
        double mass_on_keys = 0, all_looks = 0;
        for (int64_t key : query.keys) {
          mass_on_keys += weights.row(query.query)[key];
          all_looks += static_cast<double>(looks[static_cast<size_t>(key)]);
        }
        const double hit = Contains(query.keys, best[static_cast<size_t>(query.query)]) ? 1 : 0;
        text_mass.Add(mass_on_keys);
        text_top1.Add(hit);
        const double other = (all_looks - hit) / others;
        text_others.Add(other);
        chance_variance[kind] += other * (1 - other);
      }
      mass[kind].push_back(text_mass);
      top1[kind].push_back(text_top1);
      other_queries[kind].push_back(text_others);
    }
  }
};

// Text by text, how much more was scored in `a` than in `b`, on the same queries.
std::vector<TextTotal> Difference(std::span<const TextTotal> a, std::span<const TextTotal> b) {
  std::vector<TextTotal> difference;
  for (size_t i = 0; i < a.size(); ++i) {
    difference.push_back({a[i].queries, a[i].score - b[i].score});
  }
  return difference;
}

double QueriesIn(std::span<const TextTotal> totals) {
  double queries = 0;
  for (const TextTotal& total : totals) queries += total.queries;
  return queries;
}

// Whether the queries hit their keys more often than their text's other tokens do. The error is at
// least that of chance (a score test), for what was seen does not tell it where nearly every token
// looks at the same key: the few that do not may all be missing from the queries.
bool AboveOtherQueries(const HeadTotals& head, size_t kind, double z) {
  const Estimate gain = EstimateOf(Difference(head.top1[kind], head.other_queries[kind]));
  const double chance_error = std::sqrt(head.chance_variance[kind]) / QueriesIn(head.top1[kind]);
  return gain.share > z * std::max(gain.error, chance_error);
}

RelationScore ScoreOf(const HeadTotals& head, const OffsetBaseline& baseline, size_t kind,
                      double strict_z) {
  const double z = NormalPoint(0.05);
  RelationScore score;
  score.relation = static_cast<RelationKind>(kind / kRelationDirections);
  score.direction = static_cast<RelationDirection>(kind % kRelationDirections);
  score.queries = std::llround(QueriesIn(head.top1[kind]));
  score.mass = IntervalOf(head.mass[kind], z);
  score.top1 = IntervalOf(head.top1[kind], z);
  score.best_offset = baseline.offset;
  score.best_offset_top1 = IntervalOf(baseline.totals, z);
  score.other_queries_top1 = IntervalOf(head.other_queries[kind], z);
  score.above_baselines =
      IntervalOf(head.top1[kind], strict_z).low > IntervalOf(baseline.totals, strict_z).high &&
      AboveOtherQueries(head, kind, strict_z);
  return score;
}

}  // namespace

const char* RelationDirectionName(RelationDirection direction) {
  return direction == RelationDirection::kForward ? "forward" : "backward";
}

GoldTexts AlignGold(const TextEncoder& encoder, std::span<const RelationsExample> examples,
                    const std::string& origin) {
  GoldTexts result;
  for (size_t i = 0; i < examples.size(); ++i) {
    const RelationsExample& example = examples[i];
    EncodedText encoded = encoder.EncodeWithTokens(example.text);
    GoldText gold;
    gold.text.ids = std::move(encoded.ids);
    for (size_t t = 0; t < encoded.tokens.size(); ++t) {
      const std::string& token = encoded.tokens[t].text;
      if (t >= example.tokens.size() || token != example.tokens[t]) {
        throw Error(
            ErrorKind::kInput,
            "{}: example {}: the run's tokenizer cuts token {} as \"{}\", the gold says \"{}\"; "
            "train the run with the tokenizer of the gold file",
            origin, i + 1, t + 1, token, t < example.tokens.size() ? example.tokens[t] : "(end)");
      }
      gold.text.tokens.push_back(token);
    }
    const auto length = static_cast<int32_t>(gold.text.ids.size());
    if (length < encoder.max_len() && static_cast<size_t>(length) != example.tokens.size()) {
      throw Error(ErrorKind::kInput, "{}: example {}: the text has {} tokens, the gold says {}",
                  origin, i + 1, length, example.tokens.size());
    }
    for (const GoldRelation& relation : example.relations) {
      if (relation.from < length && relation.to_end <= length) {
        gold.relations.push_back(relation);
      } else {
        ++result.relations_cut;
      }
    }
    if (length > 0) result.texts.push_back(std::move(gold));
  }
  return result;
}

void ShuffleGold(std::span<GoldText> texts, uint64_t seed) {
  RandomStream random(seed, 0);
  for (GoldText& text : texts) {
    const auto length = static_cast<int32_t>(text.text.ids.size());
    std::vector<GoldRelation> moved;
    for (GoldRelation relation : text.relations) {
      const int32_t width = relation.to_end - relation.to_begin;
      relation.to_begin = static_cast<int32_t>(random.Below(static_cast<uint64_t>(length)));
      relation.to_end = std::min(relation.to_begin + width, length);
      moved.push_back(relation);
      const int32_t left = width - (relation.to_end - relation.to_begin);
      if (left > 0) moved.push_back({relation.kind, relation.from, 0, left});
    }
    text.relations = std::move(moved);
  }
}

std::vector<RelationScore> ScoreRelations(const TextClassifier& model,
                                          std::span<const GoldText> texts) {
  std::vector<std::array<GoldQueries, kKinds>> gold;
  std::vector<AnalysedText> plain;
  for (const GoldText& text : texts) {
    gold.push_back(QueriesOf(text));
    plain.push_back(text.text);
  }
  const auto heads = static_cast<size_t>(model.config().heads);
  std::vector<HeadTotals> totals(static_cast<size_t>(model.config().layers) * heads);
  WalkAttention(model, plain, [&](const HeadView& seen) {
    totals[static_cast<size_t>(seen.layer) * heads + static_cast<size_t>(seen.head)].Add(
        seen.weights, gold[static_cast<size_t>(seen.text)]);
  });

  std::vector<std::pair<size_t, OffsetBaseline>> kinds;  // those that occur
  for (size_t kind = 0; kind < kKinds; ++kind) {
    OffsetBaseline baseline = BestOffset(gold, kind);
    if (!baseline.totals.empty()) kinds.emplace_back(kind, std::move(baseline));
  }
  const double strict_z = NormalPoint(0.05 / static_cast<double>(kinds.size() * totals.size()));
  std::vector<RelationScore> scores;
  for (size_t i = 0; i < totals.size(); ++i) {
    for (const auto& [kind, baseline] : kinds) {
      RelationScore score = ScoreOf(totals[i], baseline, kind, strict_z);
      score.layer = static_cast<int>(i / heads);
      score.head = static_cast<int>(i % heads);
      scores.push_back(score);
    }
  }
  return scores;
}

}  // namespace headlight
