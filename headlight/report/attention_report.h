// The attention of a model on one text, ready to be drawn.
#pragma once

#include <string>

#include "headlight/models/text_classifier.h"
#include "headlight/report/attention_picture.h"
#include "headlight/text/text_encoder.h"

namespace headlight {

// Runs the model on the text. Throws kInput when the text has no token.
AttentionPicture MakeAttentionPicture(const TextClassifier& model, const TextEncoder& encoder,
                                      const std::string& text, const std::string& run);

// The chosen heads' attention as a NumPy array: [layers, heads, tokens, tokens], f32.
std::string AttentionAsNpy(const AttentionPicture& picture, const HeadChoice& choice = {});

}  // namespace headlight
