#include "headlight/nn/embedding.h"

#include "headlight/kernels/embedding/embedding.h"
#include "headlight/nn/init.h"

namespace headlight {

Embedding::Embedding(const EmbeddingConfig& config, DType dtype, uint64_t seed)
    : token_(MakeParameter(config.name + ".token.weight", {config.vocabulary, config.dim}, dtype,
                           true)) {
  InitNormal(token_, config.standard_deviation, seed);
  if (config.positions == PositionKind::kLearned) {
    position_ =
        MakeParameter(config.name + ".position.weight", {config.max_len, config.dim}, dtype, true);
    InitNormal(position_, config.standard_deviation, seed);
  }
  if (config.positions == PositionKind::kSinusoidal) {
    sinusoids_ = SinusoidalPositions(config.max_len, config.dim, dtype, MemoryTag::kOther);
  }
}

const Tensor* Embedding::Positions() const {
  if (!position_.value.empty()) return &position_.value;
  return sinusoids_.empty() ? nullptr : &sinusoids_;
}

void Embedding::Forward(const Tensor& ids, const RaggedLayout& layout, Tensor& y) const {
  EmbeddingForward(
      {.ids = ids, .table = token_.value, .positions = Positions(), .offsets = layout.offsets}, y);
}

void Embedding::Backward(const Tensor& ids, const RaggedLayout& layout, const Tensor& dy) {
  EmbeddingBackward(
      {.ids = ids, .table = token_.value, .positions = Positions(), .offsets = layout.offsets}, dy,
      {.dtable = token_.gradient,
       .dpositions = position_.value.empty() ? nullptr : &position_.gradient});
}

void Embedding::Collect(std::vector<Parameter*>& parameters) {
  parameters.push_back(&token_);
  if (!position_.value.empty()) parameters.push_back(&position_);
}

}  // namespace headlight
