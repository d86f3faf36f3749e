#include "headlight/models/text_classifier_config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/nn/multi_head_attention.h"

namespace headlight {
namespace {

void RequireAtLeast(const char* name, int64_t value, int64_t least) {
  if (value < least) {
    throw Error(ErrorKind::kUsage, "model: {} must be at least {}, found {}", name, least, value);
  }
}

void RequireRate(const char* name, double rate) {
  if (!(rate >= 0 && rate < 1)) {
    throw Error(ErrorKind::kUsage, "model: {} must be at least 0 and below 1, found {}", name,
                rate);
  }
}

void ValidateHeads(const TextClassifierConfig& config) {
  RequireAtLeast("heads", config.heads, 1);
  RequireAtLeast("head-dim", config.head_dim, 0);
  RequireAtLeast("kv-heads", config.kv_heads, 0);
  RequireAtLeast("qk-rank", config.qk_rank, 0);
  if (config.head_dim == 0 && config.dim % config.heads != 0) {
    throw Error(ErrorKind::kUsage,
                "model: heads must divide dim {}: {} does not; these do: {} (or give head-dim on "
                "its own)",
                config.dim, config.heads, HeadCountsThatDivide(config.dim));
  }
  CheckKeyValueHeads("model", config.heads, config.KeyValueHeads());
  const int64_t inner = config.heads * config.HeadDim();
  if (!config.output_projection && inner != config.dim) {
    throw Error(ErrorKind::kUsage,
                "model: without an output projection heads x head-dim must be dim {}, found {} x "
                "{} = {}",
                config.dim, config.heads, config.HeadDim(), inner);
  }
  if (config.scale == ScaleKind::kGiven &&
      !(std::isfinite(config.scale_value) && config.scale_value > 0)) {
    throw Error(ErrorKind::kUsage, "model: a given scale must be positive and finite, found {}",
                config.scale_value);
  }
  if (config.scale != ScaleKind::kGiven && config.scale_value != 0) {
    throw Error(ErrorKind::kUsage, "model: scale-value {} needs scale given, found {}",
                config.scale_value, Name(config.scale));
  }
}

void ValidateSizes(const TextClassifierConfig& config) {
  // Far above what anyone trains, and low enough that no product of sizes overflows.
  const int64_t most = int64_t{1} << 24;
  RequireAtLeast("vocabulary", config.vocabulary, 1);
  RequireAtLeast("classes", config.classes, 2);
  RequireAtLeast("max-len", config.max_len, 1);
  RequireAtLeast("dim", config.dim, 1);
  RequireAtLeast("layers", config.layers, 0);
  RequireAtLeast("feed-forward", config.feed_forward, 0);
  RequireAtLeast("relative-distance", config.relative_distance, 0);
  for (const auto& [name, value] : {std::pair{"vocabulary", config.vocabulary},
                                    {"classes", config.classes},
                                    {"max-len", config.max_len},
                                    {"dim", config.dim},
                                    {"layers", config.layers},
                                    {"heads", config.heads},
                                    {"kv-heads", config.kv_heads},
                                    {"head-dim", config.head_dim},
                                    {"qk-rank", config.qk_rank},
                                    {"feed-forward", config.feed_forward},
                                    {"relative-distance", config.relative_distance}}) {
    if (value > most) {
      throw Error(ErrorKind::kUsage, "model: {} must be at most {}, found {}", name, most, value);
    }
  }
}

// Of queries, keys and values together.
int64_t ProjectedFeatures(const TextClassifierConfig& config) {
  return config.heads * config.QueryDim() +
         config.KeyValueHeads() * (config.QueryDim() + config.HeadDim());
}

}  // namespace

void ValidateConfig(const TextClassifierConfig& config) {
  ValidateSizes(config);
  ValidateHeads(config);
  RequireRate("dropout", config.dropout);
  RequireRate("attention-dropout", config.attention_dropout);
  if (!(config.embedding_std >= 0 && std::isfinite(config.embedding_std))) {
    throw Error(ErrorKind::kUsage, "model: embedding-std must be at least 0, found {}",
                config.embedding_std);
  }
  if (!(config.norm_epsilon > 0 && std::isfinite(config.norm_epsilon))) {
    throw Error(ErrorKind::kUsage, "model: norm-epsilon must be positive, found {}",
                config.norm_epsilon);
  }
  if (config.window) {
    RequireAtLeast("window", std::min(config.window->left, config.window->right), 0);
  }
  if (config.relative_values && config.positions != PositionKind::kRelative) {
    throw Error(ErrorKind::kUsage, "model: relative values need relative positions, found {}",
                Name(config.positions));
  }
  if (config.relative_distance > 0 && config.positions != PositionKind::kRelative) {
    throw Error(
        ErrorKind::kUsage,
        "model: relative-distance needs relative positions (--positions relative), found {}",
        Name(config.positions));
  }
}

int64_t ParameterCount(const TextClassifierConfig& config) {
  const int64_t dim = config.dim, inner = config.heads * config.HeadDim();
  const int64_t hidden = config.FeedForwardDim();
  int64_t layer = ProjectedFeatures(config) * (dim + (config.projection_bias ? 1 : 0));
  if (config.output_projection) layer += dim * (inner + (config.output_bias ? 1 : 0));
  if (config.positions == PositionKind::kRelative) {
    const int64_t rows = 2 * config.RelativeDistance() - 1;
    layer += config.heads * config.QueryDim() * rows;
    if (config.relative_values) layer += inner * rows;
  }
  layer += hidden * (dim + 1) + dim * (hidden + 1) + 4 * dim;
  int64_t count = config.vocabulary * dim + config.layers * layer + config.classes * (dim + 1);
  if (config.positions == PositionKind::kLearned) count += config.max_len * dim;
  if (config.norm == NormPlacement::kPre) count += 2 * dim;
  if (config.pooling == PoolingChoice::kAttention) count += dim;
  return count;
}

double ForwardFlops(const TextClassifierConfig& config, int64_t tokens, double pairs) {
  const auto dim = static_cast<double>(config.dim);
  const auto inner = static_cast<double>(config.heads * config.HeadDim());
  const auto queries = static_cast<double>(config.heads * config.QueryDim());
  const auto rows = static_cast<double>(tokens);
  double layer =
      2 * rows * dim * static_cast<double>(ProjectedFeatures(config) + 2 * config.FeedForwardDim());
  if (config.output_projection) layer += 2 * rows * dim * inner;
  layer += 2 * pairs * (queries + inner);
  return layer * static_cast<double>(config.layers);
}

}  // namespace headlight
