#include "headlight/io/npy.h"

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "headlight/base/error.h"

namespace headlight {
namespace {

static_assert(std::endian::native == std::endian::little, "bytes are written as they lie");

constexpr std::string_view kMagic = "\x93NUMPY";

constexpr std::array<std::pair<DType, std::string_view>, 7> kDescriptions{{
    {DType::kF64, "<f8"},
    {DType::kF32, "<f4"},
    {DType::kF16, "<f2"},
    {DType::kI8, "|i1"},
    {DType::kU8, "|u1"},
    {DType::kI32, "<i4"},
    {DType::kI64, "<i8"},
}};

struct Header {
  std::optional<DType> dtype;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

// Reads the one form of Python dictionary that the format allows:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Header Parse() {
    Expect('{');
    while (!Take('}')) {
      const std::string_view key = String();
      Expect(':');
      if (key == "descr") {
        Once(header_.dtype.has_value(), key);
        header_.dtype = Description();
      } else if (key == "fortran_order") {
        Once(header_.fortran_order.has_value(), key);
        header_.fortran_order = Boolean();
      } else if (key == "shape") {
        Once(header_.shape.has_value(), key);
        header_.shape = Sizes();
      } else {
        Fail("the header must have the keys descr, fortran_order and shape only");
      }
      if (!Take(',')) {
        Expect('}');
        break;
      }
    }
    SkipSpace();
    if (!text_.empty()) Fail("nothing may follow the header's dictionary");
    if (!header_.dtype || !header_.fortran_order || !header_.shape) {
      Fail("the header must have the keys descr, fortran_order and shape");
    }
    return header_;
  }

 private:
  [[noreturn]] void Fail(std::string_view rule) const {
    throw Error(ErrorKind::kInput, "npy {}: {}", name_, rule);
  }
  void Once(bool seen, std::string_view key) const {
    if (seen) Fail(fmt::format("the header's key {} must occur once", key));
  }
  void SkipSpace() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  bool Take(char c) {
    SkipSpace();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void Expect(char c) {
    if (!Take(c)) Fail(fmt::format("the header must be a dictionary; '{}' is missing in it", c));
  }
  bool TakeWord(std::string_view word) {
    SkipSpace();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::string_view String() {
    SkipSpace();
    const char quote = text_.empty() ? '\0' : text_[0];
    const size_t end = text_.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos) {
      Fail("the header's keys and descr must be strings");
    }
    const std::string_view value = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return value;
  }
  DType Description() {
    SkipSpace();
    if (text_.starts_with('[')) Fail("structured arrays are not supported");
    const std::string_view found = String();
    for (const auto& [dtype, description] : kDescriptions) {
      if (found == description) return dtype;
    }
    Fail("descr must be one of <f8 <f4 <f2 |i1 |u1 <i4 <i8");
  }
  bool Boolean() {
    if (TakeWord("True")) return true;
    if (!TakeWord("False")) Fail("fortran_order must be True or False");
    return false;
  }
  std::vector<int64_t> Sizes() {
    std::vector<int64_t> sizes;
    Expect('(');
    while (!Take(')')) {
      if (sizes.size() == kMaxRank) Fail(fmt::format("at most {} axes are supported", kMaxRank));
      sizes.push_back(Number());
      if (Take(',')) continue;
      Expect(')');
      break;
    }
    return sizes;
  }
  int64_t Number() {
    SkipSpace();
    int64_t value = 0;
    int digits = 0;
    while (!text_.empty() && text_[0] >= '0' && text_[0] <= '9') {
      if (++digits > 18) Fail("sizes must be below 10^18");
      value = value * 10 + (text_[0] - '0');
      text_.remove_prefix(1);
    }
    if (digits == 0) Fail("sizes must be whole numbers");
    return value;
  }

  std::string_view text_;
  const std::string& name_;
  Header header_;
};

std::string NpyHeader(const Tensor& tensor) {
  std::string_view description;
  for (const auto& [dtype, text] : kDescriptions) {
    if (dtype == tensor.dtype()) description = text;
  }
  if (description.empty()) {
    throw Error(ErrorKind::kUsage, "npy: NumPy has no dtype {}; cast to f32 first",
                DTypeName(tensor.dtype()));
  }
  std::string shape;
  for (int axis = 0; axis < tensor.shape().rank(); ++axis) {
    shape += fmt::format("{}{},", axis == 0 ? "" : " ", tensor.size(axis));
  }
  if (tensor.shape().rank() > 1) shape.pop_back();  // a trailing comma only in (n,)
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", description, shape);
  // The data begin at a multiple of 64 bytes; the header ends in a line break.
  const size_t before = kMagic.size() + 4;
  text.append(63 - (before + text.size()) % 64, ' ');
  text.push_back('\n');
  std::string header(kMagic);
  header.append(
      {'\x01', '\x00', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)});
  return header + text;
}

const char* Characters(const std::byte* bytes) { return reinterpret_cast<const char*>(bytes); }

}  // namespace

std::string SerializeNpy(const Tensor& tensor) {
  if (tensor.empty()) throw Error(ErrorKind::kInternal, "npy: the tensor must have a buffer");
  const Tensor whole = tensor.IsContiguous() ? tensor : tensor.Clone(MemoryTag::kWorkspace);
  std::string bytes = NpyHeader(whole);
  bytes.append(Characters(whole.bytes()),
               static_cast<size_t>(whole.elements()) * DTypeSize(whole.dtype()));
  return bytes;
}

void WriteNpy(const std::string& path, const Tensor& tensor) {
  WriteFileAtomically(path, SerializeNpy(tensor));
}

Tensor ParseNpy(std::string_view bytes, const std::string& name, MemoryTag tag) {
  const auto require = [&](bool holds, std::string_view rule) {
    if (!holds) throw Error(ErrorKind::kInput, "npy {}: {}", name, rule);
  };
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(bytes[i])); };
  require(bytes.size() >= 12 && bytes.starts_with(kMagic), "must begin with \\x93NUMPY");
  const size_t version = byte(6);
  require(version >= 1 && version <= 3, "the version must be 1, 2 or 3");
  const size_t start = version == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  require(length <= bytes.size() - start, "the header must lie within the file");
  const Header header = HeaderParser(bytes.substr(start, length), name).Parse();
  require(!*header.fortran_order, "the array must be in C order (fortran_order False)");
  const std::string_view data = bytes.substr(start + length);
  const std::optional<int64_t> size =
      BytesOfSizes(*header.shape, static_cast<int64_t>(DTypeSize(*header.dtype)));
  require(size.has_value(), "the shape must be at most 2^60 bytes");
  if (*size != static_cast<int64_t>(data.size())) {
    throw Error(ErrorKind::kInput, "npy {}: the data must have {} bytes (by its shape), found {}",
                name, *size, data.size());
  }
  const Shape shape(header.shape->data(), static_cast<int>(header.shape->size()));
  Tensor tensor = Tensor::Uninitialized(shape, *header.dtype, tag);
  if (!data.empty()) std::memcpy(tensor.bytes(), data.data(), data.size());
  return tensor;
}

Tensor ReadNpy(const std::string& path, MemoryTag tag, int64_t max_bytes) {
  return ParseNpy(ReadFile(path, max_bytes), path, tag);
}

}  // namespace headlight
