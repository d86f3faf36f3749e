// Embedding: token vectors, with positions added where they are learned or sinusoidal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/nn/options.h"
#include "headlight/nn/parameter.h"
#include "headlight/nn/ragged_batch.h"

namespace headlight {

struct EmbeddingConfig {
  std::string name;  // parameters NAME.token.weight and NAME.position.weight
  int64_t vocabulary = 0;
  int64_t max_len = 0;
  int64_t dim = 0;
  PositionKind positions = PositionKind::kNone;  // kRelative and kAlibi add nothing here
  double standard_deviation = 1;                 // of the initial values, normal
};

class Embedding {
 public:
  Embedding() = default;
  Embedding(const EmbeddingConfig& config, DType dtype, uint64_t seed);

  // ids: i32 [tokens]; y: [tokens, dim]. Throws kShape when a sequence is longer than max_len and
  // positions are added; kInput for an id out of range.
  void Forward(const Tensor& ids, const RaggedLayout& layout, Tensor& y) const;
  void Backward(const Tensor& ids, const RaggedLayout& layout, const Tensor& dy);

  void Collect(std::vector<Parameter*>& parameters);

 private:
  const Tensor* Positions() const;

  Parameter token_, position_;
  Tensor sinusoids_;  // [max_len, dim]
};

}  // namespace headlight
