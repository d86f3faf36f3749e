// FNV-1a over 64-bit words: whether two sequences are the same. Not safe against intent.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace headlight {

class Fingerprint {
 public:
  template <typename T>
  void Add(const std::vector<T>& values) {
    AddWord(values.size());
    for (const T value : values) AddWord(static_cast<uint64_t>(value));
  }
  void Add(std::string_view text) {
    AddWord(text.size());
    for (const char byte : text) AddWord(static_cast<unsigned char>(byte));
  }
  uint64_t value() const { return value_; }

 private:
  void AddWord(uint64_t word) { value_ = (value_ ^ word) * 0x100000001b3u; }
  uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace headlight
