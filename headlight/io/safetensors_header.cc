#include "headlight/io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "headlight/base/error.h"

namespace headlight {
namespace {

constexpr std::array<std::pair<DType, const char*>, 8> kNames{{
    {DType::kF64, "F64"},
    {DType::kF32, "F32"},
    {DType::kBF16, "BF16"},
    {DType::kF16, "F16"},
    {DType::kI8, "I8"},
    {DType::kU8, "U8"},
    {DType::kI32, "I32"},
    {DType::kI64, "I64"},
}};

// Long names from a file do not flood a message.
std::string Short(std::string_view text) {
  return text.size() <= 80 ? std::string(text) : std::string(text.substr(0, 80)) + "...";
}

// Takes the parser's events one by one. Nothing is built that the format does not know, so neither
// nesting nor size of a hostile header costs more than its own bytes.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& name) : name_(name) {}

  SafetensorsHeader Take() { return std::move(header_); }

  bool start_object(size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kEntry) {
      place_ = Place::kInEntry;
    } else if (place_ == Place::kMetadata) {
      place_ = Place::kInMetadata;
    } else {
      Unexpected("an object");
    }
    return true;
  }

  bool key(string_t& text) override {
    if (place_ == Place::kTop) {
      StartTopKey(text);
    } else if (place_ == Place::kInEntry) {
      StartEntryKey(text);
    } else {
      metadata_key_ = text;
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kInEntry) FinishEntry();
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ == Place::kShape) {
      place_ = Place::kInShape;
    } else if (place_ == Place::kOffsets) {
      place_ = Place::kInOffsets;
    } else {
      Unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    place_ = Place::kInEntry;
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == Place::kInMetadata) {
      if (!header_.metadata.emplace(metadata_key_, text).second) {
        Fail("metadata keys must be unique, found twice: " + Short(metadata_key_));
      }
    } else if (place_ == Place::kDType) {
      entry_.dtype = FindDType(text);
      place_ = Place::kInEntry;
    } else {
      Unexpected("a string");
    }
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (value > uint64_t{INT64_MAX}) Fail(Where() + "numbers must be below 2^63");
    const auto number = static_cast<int64_t>(value);
    if (place_ == Place::kInShape) {
      if (sizes_.size() == kMaxRank) {
        Fail(fmt::format("{}must have at most {} axes", Where(), kMaxRank));
      }
      sizes_.push_back(number);
    } else if (place_ == Place::kInOffsets) {
      if (offsets_.size() == 2) Fail(Where() + "data_offsets must be two numbers");
      offsets_.push_back(number);
    } else {
      Unexpected("a number");
    }
    return true;
  }

  bool number_integer(number_integer_t value) override {
    Fail(fmt::format("{}numbers must be >= 0, found {}", Where(), value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    Fail(fmt::format("{}numbers must be whole, found {}", Where(), Short(text)));
  }
  bool null() override { Unexpected("null"); }
  bool boolean(bool) override { Unexpected("a boolean"); }
  bool binary(binary_t&) override { Unexpected("binary data"); }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    Fail(fmt::format("the header must be JSON; it is broken at its byte {}", position));
  }

 private:
  enum class Place {
    kStart,
    kTop,
    kEntry,    // an entry's object comes next
    kInEntry,  // its keys
    kDType,    // the value of dtype comes next
    kShape,    // the array of shape comes next
    kInShape,  // its numbers
    kOffsets,
    kInOffsets,
    kMetadata,
    kInMetadata,
    kEnd,
  };

  [[noreturn]] void Fail(std::string_view rule) const {
    throw Error(ErrorKind::kInput, "safetensors {}: {}", name_, rule);
  }
  std::string Where() const {
    return entry_.name.empty() ? "" : fmt::format("tensor \"{}\": ", Short(entry_.name));
  }
  [[noreturn]] void Unexpected(std::string_view what) const {
    Fail(
        fmt::format("{}the header must be an object of objects with dtype, shape and "
                    "data_offsets, and __metadata__ an object of strings; found {} elsewhere",
                    Where(), what));
  }

  void StartTopKey(const std::string& text) {
    if (!names_.insert(text).second) Fail("names must be unique, found twice: " + Short(text));
    entry_ = {};
    if (text == "__metadata__") {
      place_ = Place::kMetadata;
      return;
    }
    if (text.empty()) Fail("names must not be empty");
    entry_.name = text;
    sizes_.clear();
    offsets_.clear();
    seen_dtype_ = seen_shape_ = seen_offsets_ = false;
    place_ = Place::kEntry;
  }

  void StartEntryKey(std::string_view text) {
    bool* seen = nullptr;
    if (text == "dtype") {
      seen = &seen_dtype_;
      place_ = Place::kDType;
    } else if (text == "shape") {
      seen = &seen_shape_;
      place_ = Place::kShape;
    } else if (text == "data_offsets") {
      seen = &seen_offsets_;
      place_ = Place::kOffsets;
    } else {
      Fail(Where() + "keys must be dtype, shape and data_offsets, found " + Short(text));
    }
    if (*seen) Fail(fmt::format("{}the key {} must occur once", Where(), text));
    *seen = true;
  }

  void FinishEntry() {
    if (!seen_dtype_ || !seen_shape_ || !seen_offsets_ || offsets_.size() != 2) {
      Fail(Where() + "must have dtype, shape and two data_offsets");
    }
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    const std::optional<int64_t> size =
        BytesOfSizes(sizes_, static_cast<int64_t>(DTypeSize(entry_.dtype)));
    if (!size) Fail(Where() + "the shape must be at most 2^60 bytes");
    if (entry_.end < entry_.begin || entry_.end - entry_.begin != *size) {
      Fail(fmt::format("{}dtype and shape need {} bytes, data_offsets are [{}, {}]", Where(), *size,
                       entry_.begin, entry_.end));
    }
    entry_.shape = Shape(sizes_.data(), static_cast<int>(sizes_.size()));
    header_.entries.push_back(std::move(entry_));
    entry_ = {};
  }

  DType FindDType(std::string_view text) const {
    for (const auto& [dtype, name] : kNames) {
      if (text == name) return dtype;
    }
    Fail(fmt::format("{}dtype must be one of F64 F32 BF16 F16 I8 U8 I32 I64, found {}", Where(),
                     Short(text)));
  }

  const std::string& name_;
  Place place_ = Place::kStart;
  SafetensorsHeader header_;
  std::set<std::string> names_;
  std::string metadata_key_;
  SafetensorsEntry entry_;
  std::vector<int64_t> sizes_;
  std::vector<int64_t> offsets_;
  bool seen_dtype_ = false;
  bool seen_shape_ = false;
  bool seen_offsets_ = false;
};

// Overlaps, gaps, and data that no tensor or no file covers.
void CheckOffsets(const SafetensorsHeader& header, int64_t data_bytes, const std::string& name) {
  int64_t reached = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.end > data_bytes) {
      throw Error(ErrorKind::kInput,
                  "safetensors {}: tensor \"{}\": data_offsets must lie within {} bytes of data, "
                  "found [{}, {}]",
                  name, Short(entry.name), data_bytes, entry.begin, entry.end);
    }
    if (entry.begin != reached) {
      throw Error(ErrorKind::kInput,
                  "safetensors {}: tensor \"{}\": tensors must follow each other without {}; the "
                  "one before ends at {}, found data_offsets [{}, {}]",
                  name, Short(entry.name), entry.begin < reached ? "overlap" : "a gap", reached,
                  entry.begin, entry.end);
    }
    reached = entry.end;
  }
  if (reached != data_bytes) {
    throw Error(ErrorKind::kInput,
                "safetensors {}: the tensors must cover the data; they end at {} of {} bytes", name,
                reached, data_bytes);
  }
}

}  // namespace

const char* SafetensorsDTypeName(DType dtype) {
  for (const auto& [known, name] : kNames) {
    if (known == dtype) return name;
  }
  throw Error(ErrorKind::kInternal, "safetensors: no name for dtype {}", DTypeName(dtype));
}

SafetensorsHeader ParseSafetensorsHeader(std::string_view json, int64_t data_bytes,
                                         const std::string& name) {
  if (!json.starts_with('{')) {
    throw Error(ErrorKind::kInput, "safetensors {}: the header must begin with {{", name);
  }
  HeaderReader reader(name);
  nlohmann::json::sax_parse(json, &reader);
  SafetensorsHeader header = reader.Take();
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  CheckOffsets(header, data_bytes, name);
  return header;
}

int64_t SafetensorsHeaderLength(std::string_view first_bytes, int64_t file_bytes,
                                const std::string& name) {
  if (first_bytes.size() < 8 || file_bytes < 8) {
    throw Error(ErrorKind::kInput, "safetensors {}: must have 8 bytes at least, found {}", name,
                file_bytes);
  }
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) {
    length |= static_cast<uint64_t>(static_cast<unsigned char>(first_bytes[i])) << (8 * i);
  }
  const int64_t limit = std::min(kMaxSafetensorsHeader, file_bytes - 8);
  if (length > static_cast<uint64_t>(limit)) {
    throw Error(
        ErrorKind::kInput,
        "safetensors {}: the header's length must be at most {} (truncated file?), found {}", name,
        limit, length);
  }
  return static_cast<int64_t>(length);
}

}  // namespace headlight
