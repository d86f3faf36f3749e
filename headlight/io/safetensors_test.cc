#include "headlight/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "headlight/base/error.h"

namespace headlight {
namespace {

using testing::HasSubstr;

constexpr DType kAll[] = {DType::kF64, DType::kF32, DType::kBF16, DType::kF16,
                          DType::kI8,  DType::kU8,  DType::kI32,  DType::kI64};

Tensor Counting(const Shape& shape, DType dtype) {
  Tensor tensor = Tensor::Zeros(shape, dtype, MemoryTag::kOther);
  for (size_t i = 0; i < static_cast<size_t>(tensor.elements()) * DTypeSize(dtype); ++i) {
    tensor.bytes()[i] = static_cast<std::byte>(i * 7 + 1);
  }
  return tensor;
}

std::string Data(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes()),
          static_cast<size_t>(tensor.elements()) * DTypeSize(tensor.dtype())};
}

Safetensors Sample() {
  Safetensors contents;
  for (const DType dtype : kAll) contents.tensors[DTypeName(dtype)] = Counting({3, 1, 5}, dtype);
  contents.tensors["scalar"] = Counting(Shape(), DType::kF32);
  contents.tensors["none"] = Counting({0, 4}, DType::kF32);
  contents.metadata = {{"format", "pt"}, {"名\"\n", "值</script>"}};
  return contents;
}

// A file with this header and that many bytes of data.
std::string Bytes(const std::string& json, size_t data) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return bytes + json + std::string(data, 'd');
}

std::string Refusal(const std::string& bytes) {
  try {
    ParseSafetensors(bytes, "the_file");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), HasSubstr("the_file"));
    return error.what();
  }
  return "accepted";
}

TEST(Safetensors, RoundTripsThroughAFile) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("hl_{}.safetensors", getpid()))
          .string();
  const Safetensors contents = Sample();
  WriteSafetensors(path, contents);
  const Safetensors read = ReadSafetensors(path, {.tag = MemoryTag::kOptimizer});
  EXPECT_EQ(read.metadata, contents.metadata);
  ASSERT_EQ(read.tensors.size(), contents.tensors.size());
  for (const auto& [name, tensor] : contents.tensors) {
    const Tensor& found = read.tensors.at(name);
    EXPECT_EQ(found.shape(), tensor.shape()) << name;
    EXPECT_EQ(found.dtype(), tensor.dtype()) << name;
    EXPECT_EQ(Data(found), Data(tensor)) << name;
  }
  EXPECT_EQ(ReadFile(path), SerializeSafetensors(contents));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THROW(ReadSafetensors(path), Error);
  std::filesystem::remove(path);
}

TEST(Safetensors, BytesAreDeterministicAndAligned) {
  const std::string bytes = SerializeSafetensors(Sample());
  EXPECT_EQ(bytes, SerializeSafetensors(ParseSafetensors(bytes, "again")));
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  EXPECT_EQ((8 + header) % 64, 0u);
  EXPECT_EQ(bytes[8], '{');
}

TEST(Safetensors, KnownBytes) {
  Safetensors contents;
  contents.tensors["a"] = Tensor::Zeros({2}, DType::kF32, MemoryTag::kOther);
  const std::string json = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(SerializeSafetensors(contents), std::string("\x38\0\0\0\0\0\0\0", 8) + json +
                                                std::string(56 - json.size(), ' ') +
                                                std::string(8, '\0'));
}

TEST(Safetensors, StridedTensorsAreGathered) {
  Safetensors contents;
  contents.tensors["t"] = Counting({2, 3}, DType::kF32).Transpose(0, 1);
  const Safetensors read = ParseSafetensors(SerializeSafetensors(contents), "t");
  EXPECT_EQ(Data(read.tensors.at("t")), Data(contents.tensors["t"].Clone(MemoryTag::kOther)));
}

TEST(Safetensors, RefusesTheUnwritable) {
  Safetensors contents;
  contents.tensors["a"] = Tensor();
  EXPECT_THROW(SerializeSafetensors(contents), Error);
  contents.tensors = {{"\xff", Counting({1}, DType::kF32)}};
  EXPECT_THROW(SerializeSafetensors(contents), Error);
}

TEST(Safetensors, RefusesHostileHeaders) {
  const auto f32 = [](const std::string& shape, const std::string& offsets) {
    return R"({"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  const auto a = [&](const std::string& shape, const std::string& offsets) {
    return R"({"a":)" + f32(shape, offsets) + "}";
  };
  struct Case {
    std::string bytes, rule;
  };
  const Case cases[] = {
      {"", "8 bytes at least"},
      {std::string(7, '\0'), "8 bytes at least"},
      {std::string(8, '\xff'), "header's length"},
      {Bytes("{}", 0).substr(0, 9), "header's length"},
      {Bytes("", 0), "begin with {"},
      {Bytes("[]", 0), "begin with {"},
      {Bytes(" {}", 0), "begin with {"},
      {Bytes("{", 0), "must be JSON"},
      {Bytes("{} x", 0), "must be JSON"},
      {Bytes("{\"a\xff\":1}", 0), "must be JSON"},
      {Bytes(R"({"a":1})", 0), "object of objects"},
      {Bytes(R"({"a":[]})", 0), "object of objects"},
      {Bytes(R"({"a":null})", 0), "object of objects"},
      {Bytes(R"({"a":true})", 0), "object of objects"},
      {Bytes(R"({"":)" + f32("[1]", "[0,4]") + "}", 4), "must not be empty"},
      {Bytes(R"({"a":{}})", 0), "must have dtype"},
      {Bytes(R"({"a":{"dtype":"F32","shape":[1]}})", 4), "must have dtype"},
      {Bytes(R"({"a":{"dtype":"F32","dtype":"F32"}})", 0), "must occur once"},
      {Bytes(R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1), "F8_E4M3"},
      {Bytes(R"({"a":{"other":1}})", 0), "keys must be"},
      {Bytes(a("[1]", "[0]"), 4), "two data_offsets"},
      {Bytes(a("[1]", "[0,4,8]"), 4), "two numbers"},
      {Bytes(a("[-1]", "[0,4]"), 4), ">= 0"},
      {Bytes(a("[1.5]", "[0,4]"), 4), "whole"},
      {Bytes(a("[1e400]", "[0,4]"), 4), "JSON"},
      {Bytes(a("[[1]]", "[0,4]"), 4), "found an array"},
      {Bytes(a("[1,1,1,1,1]", "[0,4]"), 4), "at most 4 axes"},
      {Bytes(a("[99999999999999999999]", "[0,4]"), 4), "whole"},
      {Bytes(a("[18446744073709551615]", "[0,4]"), 4), "below 2^63"},
      {Bytes(a("[4294967296,4294967296]", "[0,0]"), 0), "2^60"},
      {Bytes(a("[0,4294967296,4294967296]", "[0,0]"), 0), "2^60"},
      {Bytes(a("[9223372036854775807]", "[0,0]"), 0), "2^60"},
      {Bytes(a("[2]", "[0,4]"), 4), "need 8 bytes"},
      {Bytes(a("[1]", "[4,0]"), 4), "need 4 bytes"},
      {Bytes(a("[1]", "[0,4]"), 3), "within 3 bytes"},
      {Bytes(a("[1]", "[8,12]"), 8), "within 8 bytes"},
      {Bytes(a("[1]", "[0,4]"), 8), "cover the data"},
      {Bytes(a("[1]", "[4,8]"), 8), "without a gap"},
      {Bytes(R"({"a":)" + f32("[2]", "[0,8]") + R"(,"b":)" + f32("[1]", "[4,8]") + "}", 8),
       "without overlap"},
      {Bytes(R"({"a":)" + f32("[1]", "[0,4]") + R"(,"a":)" + f32("[1]", "[4,8]") + "}", 8),
       "found twice: a"},
      {Bytes(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "found twice: k"},
      {Bytes(R"({"__metadata__":{"k":1}})", 0), "object of strings"},
      {Bytes(R"({"__metadata__":{"k":{}}})", 0), "object of strings"},
      {Bytes(R"({"__metadata__":{},"__metadata__":{}})", 0), "found twice"},
      {Bytes("{\"a\":" + std::string(1000000, '['), 0), "found an array"},
      {Bytes(
           [] {
             std::string deep;
             for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
             return deep;
           }(),
           0),
       "keys must be"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(Refusal(c.bytes), HasSubstr(c.rule)) << c.bytes.substr(0, 120);
  }
}

TEST(Safetensors, EveryTruncationAndEveryFlippedHeaderBitIsAnErrorOrReads) {
  const std::string bytes = SerializeSafetensors(Sample());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(Refusal(bytes.substr(0, length)), "accepted") << length;
  }
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  for (size_t i = 0; i < 8 + header; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      Refusal(changed);  // its own expectations
    }
  }
}

}  // namespace
}  // namespace headlight
