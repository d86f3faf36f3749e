// For the tests of pictures: a made-up attention picture, and a look into a PNG.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "headlight/report/attention_picture.h"

namespace headlight {

// Rows sum to 1; every head looks at another offset.
inline AttentionPicture MakePicture(std::vector<std::string> tokens, int64_t layers,
                                    int64_t heads) {
  AttentionPicture picture;
  picture.tokens = std::move(tokens);
  for (const std::string& token : picture.tokens) picture.text += token;
  picture.layers = layers;
  picture.heads = heads;
  picture.run = "runs/test";
  const auto n = static_cast<int64_t>(picture.tokens.size());
  for (int64_t layer = 0; layer < layers; ++layer) {
    picture.weights.emplace_back();
    picture.figures.emplace_back();
    for (int64_t head = 0; head < heads; ++head) {
      std::vector<float> weights;
      for (int64_t i = 0; i < n; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < n; ++j) {
          const auto away = static_cast<float>(std::abs(i - j - head + layer));
          weights.push_back(std::exp(-away));
          sum += weights.back();
        }
        for (int64_t j = 0; j < n; ++j) weights[static_cast<size_t>(i * n + j)] /= sum;
      }
      picture.weights.back().push_back(std::move(weights));
      picture.figures.back().push_back(
          {1.25, 2.5, 3, "neighbour", {{"share on first token", 0.1}}});
    }
  }
  return picture;
}

inline uint32_t PngNumber(const std::string& png, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(png.at(at + i));
  return value;
}
inline bool IsPng(const std::string& bytes) {
  return bytes.starts_with("\x89PNG\r\n\x1a\n") && bytes.substr(12, 4) == "IHDR";
}
inline uint32_t PngWidth(const std::string& png) { return PngNumber(png, 16); }
inline uint32_t PngHeight(const std::string& png) { return PngNumber(png, 20); }

}  // namespace headlight
