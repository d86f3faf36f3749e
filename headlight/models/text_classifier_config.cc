#include "headlight/models/text_classifier_config.h"

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
  if (config.head_dim == 0 && config.dim % config.heads != 0) {
    throw Error(ErrorKind::kUsage,
                "model: heads must divide dim {}: {} does not; these do: {} (or give head-dim on "
                "its own)",
                config.dim, config.heads, HeadCountsThatDivide(config.dim));
  }
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
                                    {"head-dim", config.head_dim},
                                    {"feed-forward", config.feed_forward},
                                    {"relative-distance", config.relative_distance}}) {
    if (value > most) {
      throw Error(ErrorKind::kUsage, "model: {} must be at most {}, found {}", name, most, value);
    }
  }
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
  if (config.relative_values && config.positions != PositionKind::kRelative) {
    throw Error(ErrorKind::kUsage, "model: relative values need relative positions, found {}",
                Name(config.positions));
  }
}

int64_t ParameterCount(const TextClassifierConfig& config) {
  const int64_t dim = config.dim, inner = config.heads * config.HeadDim();
  const int64_t hidden = config.FeedForwardDim();
  int64_t layer = 3 * inner * (dim + (config.projection_bias ? 1 : 0));
  if (config.output_projection) layer += dim * (inner + (config.output_bias ? 1 : 0));
  if (config.positions == PositionKind::kRelative) {
    layer += (config.relative_values ? 2 : 1) * inner * (2 * config.RelativeDistance() - 1);
  }
  layer += hidden * (dim + 1) + dim * (hidden + 1) + 4 * dim;
  int64_t count = config.vocabulary * dim + config.layers * layer + config.classes * (dim + 1);
  if (config.positions == PositionKind::kLearned) count += config.max_len * dim;
  if (config.norm == NormPlacement::kPre) count += 2 * dim;
  if (config.pooling == PoolingChoice::kAttention) count += dim;
  return count;
}

double ForwardFlops(const TextClassifierConfig& config, int64_t tokens, int64_t pairs) {
  const auto dim = static_cast<double>(config.dim);
  const auto inner = static_cast<double>(config.heads * config.HeadDim());
  const auto rows = static_cast<double>(tokens);
  double layer = 2 * rows * dim * (3 * inner + 2 * static_cast<double>(config.FeedForwardDim()));
  if (config.output_projection) layer += 2 * rows * dim * inner;
  layer += (config.causal ? 2 : 4) * static_cast<double>(pairs) * inner;
  return layer * static_cast<double>(config.layers);
}

}  // namespace headlight
