// The header of a safetensors file, checked: what the reader trusts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/tensor/dtype.h"
#include "headlight/tensor/shape.h"

namespace headlight {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  int64_t begin = 0;  // bytes from the start of the data
  int64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their data
  std::map<std::string, std::string> metadata;
};

inline constexpr int64_t kMaxSafetensorsHeader = 100'000'000;  // bytes; the limit of the reference

// "F32", "BF16", ...
const char* SafetensorsDTypeName(DType dtype);

// `json`: the header's text. `data_bytes`: what follows it in the file. After this the entries lie
// one after the other from 0 to data_bytes, each as large as its dtype and shape say. kInput else.
SafetensorsHeader ParseSafetensorsHeader(std::string_view json, int64_t data_bytes,
                                         const std::string& name);

// Checks the first 8 bytes against the size of the whole file; the header's length. kInput.
int64_t SafetensorsHeaderLength(std::string_view first_bytes, int64_t file_bytes,
                                const std::string& name);

}  // namespace headlight
