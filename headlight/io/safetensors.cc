#include "headlight/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "headlight/base/error.h"
#include "headlight/io/safetensors_header.h"

namespace headlight {
namespace {

static_assert(std::endian::native == std::endian::little, "bytes are written as they lie");

constexpr size_t kDataAlignment = 64;

struct Source {
  std::string name;
  Tensor tensor;  // contiguous
};

std::string_view DataOf(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes()),
          static_cast<size_t>(tensor.elements()) * DTypeSize(tensor.dtype())};
}

// Larger elements first, then by name: every tensor is aligned to its element with no gaps.
std::vector<Source> InFileOrder(const Safetensors& contents) {
  std::vector<Source> sources;
  for (const auto& [name, tensor] : contents.tensors) {
    if (name.empty() || name == "__metadata__" || tensor.empty()) {
      throw Error(ErrorKind::kInternal, "safetensors: tensor \"{}\" must have a name of its own {}",
                  name, "and a buffer");
    }
    sources.push_back({name, tensor.IsContiguous() ? tensor : tensor.Clone(MemoryTag::kWorkspace)});
  }
  std::stable_sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) {
    return DTypeSize(a.tensor.dtype()) > DTypeSize(b.tensor.dtype());
  });
  return sources;
}

std::string Quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::kInternal, "safetensors: names and metadata must be UTF-8");
  }
}

// The length and the JSON, padded with spaces so that the data are aligned.
std::string HeaderBytes(const std::vector<Source>& sources,
                        const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  const auto separate = [&] {
    if (json.size() > 1) json += ",";
  };
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    bool first = true;
    for (const auto& [key, value] : metadata) {
      json += (first ? "" : ",") + Quoted(key) + ":" + Quoted(value);
      first = false;
    }
    json += "}";
  }
  size_t offset = 0;
  for (const Source& source : sources) {
    separate();
    json += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[", Quoted(source.name),
                        SafetensorsDTypeName(source.tensor.dtype()));
    for (int axis = 0; axis < source.tensor.shape().rank(); ++axis) {
      json += fmt::format("{}{}", axis == 0 ? "" : ",", source.tensor.size(axis));
    }
    const size_t end = offset + DataOf(source.tensor).size();
    json += fmt::format("],\"data_offsets\":[{},{}]}}", offset, end);
    offset = end;
  }
  json += "}";
  json.append((kDataAlignment - (8 + json.size()) % kDataAlignment) % kDataAlignment, ' ');
  if (static_cast<int64_t>(json.size()) > kMaxSafetensorsHeader) {
    throw Error(ErrorKind::kInternal, "safetensors: the header must be below {} bytes, found {}",
                kMaxSafetensorsHeader, json.size());
  }
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return bytes + json;
}

Tensor MakeTensor(const SafetensorsEntry& entry, MemoryTag tag) {
  return Tensor::Uninitialized(entry.shape, entry.dtype, tag);
}

SafetensorsHeader ReadHeader(FileReader& file, const std::string& path) {
  const int64_t size = file.bytes();
  std::string first(static_cast<size_t>(std::min<int64_t>(size, 8)), '\0');
  file.Read(first.data(), static_cast<int64_t>(first.size()));
  const int64_t length = SafetensorsHeaderLength(first, size, path);
  std::string json(static_cast<size_t>(length), '\0');
  file.Read(json.data(), length);
  return ParseSafetensorsHeader(json, size - 8 - length, path);
}

}  // namespace

void WriteSafetensors(const std::string& path, const Safetensors& contents) {
  const std::vector<Source> sources = InFileOrder(contents);
  const std::string header = HeaderBytes(sources, contents.metadata);
  std::vector<std::string_view> parts{header};
  for (const Source& source : sources) parts.push_back(DataOf(source.tensor));
  WriteFileAtomically(path, parts);
}

std::string SerializeSafetensors(const Safetensors& contents) {
  const std::vector<Source> sources = InFileOrder(contents);
  std::string bytes = HeaderBytes(sources, contents.metadata);
  for (const Source& source : sources) bytes += DataOf(source.tensor);
  return bytes;
}

Safetensors ParseSafetensors(std::string_view bytes, const std::string& name,
                             const ReadSafetensorsOptions& options) {
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t length = SafetensorsHeaderLength(bytes.substr(0, 8), size, name);
  SafetensorsHeader header =
      ParseSafetensorsHeader(bytes.substr(8, static_cast<size_t>(length)), size - 8 - length, name);
  Safetensors contents;
  contents.metadata = std::move(header.metadata);
  const std::string_view data = bytes.substr(8 + static_cast<size_t>(length));
  for (const SafetensorsEntry& entry : header.entries) {
    Tensor tensor = MakeTensor(entry, options.tag);
    const auto count = static_cast<size_t>(entry.end - entry.begin);
    if (count > 0) std::memcpy(tensor.bytes(), data.data() + entry.begin, count);
    contents.tensors.emplace(entry.name, std::move(tensor));
  }
  return contents;
}

Safetensors ReadSafetensors(const std::string& path, const ReadSafetensorsOptions& options) {
  // Straight into the tensors: a checkpoint is not held twice.
  FileReader file(path, options.max_bytes);
  SafetensorsHeader header = ReadHeader(file, path);
  Safetensors contents;
  contents.metadata = std::move(header.metadata);
  for (const SafetensorsEntry& entry : header.entries) {
    Tensor tensor = MakeTensor(entry, options.tag);
    file.Read(reinterpret_cast<char*>(tensor.bytes()), entry.end - entry.begin);
    contents.tensors.emplace(entry.name, std::move(tensor));
  }
  return contents;
}

std::map<std::string, std::string> ReadSafetensorsMetadata(const std::string& path) {
  FileReader file(path, ReadSafetensorsOptions{}.max_bytes);
  return ReadHeader(file, path).metadata;
}

}  // namespace headlight
