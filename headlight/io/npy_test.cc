#include "headlight/io/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "headlight/base/error.h"

namespace headlight {
namespace {

using testing::HasSubstr;

Tensor Counting(const Shape& shape) {
  Tensor tensor = Tensor::Zeros(shape, DType::kF32, MemoryTag::kOther);
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data<float>()[i] = static_cast<float>(i);
  return tensor;
}

std::string Bytes(std::string text, size_t data) {
  text += "\n";
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(text.size() & 0xFF);
  bytes += static_cast<char>(text.size() >> 8);
  return bytes + text + std::string(data, 'd');
}

std::string Refusal(const std::string& bytes) {
  try {
    ParseNpy(bytes, "the_file", MemoryTag::kOther);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), HasSubstr("the_file"));
    return error.what();
  }
  return "accepted";
}

// numpy.save of numpy.arange(6, dtype='f4').reshape(2, 3), NumPy 1.24, byte for byte.
TEST(Npy, BytesAreNumPys) {
  const std::string bytes = SerializeNpy(Counting({2, 3}));
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header.append(117 - header.size(), ' ');
  EXPECT_EQ(bytes.substr(0, 128), std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n");
  EXPECT_EQ(bytes.size(), 128u + 24u);
}

TEST(Npy, RoundTrips) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("hl_{}.npy", getpid())).string();
  for (const Shape& shape : {Shape(), Shape{3}, Shape{0, 2}, Shape{2, 3, 4, 5}}) {
    const Tensor tensor = Counting(shape);
    WriteNpy(path, tensor);
    const Tensor read = ReadNpy(path, MemoryTag::kOther);
    EXPECT_EQ(read.shape(), shape);
    EXPECT_EQ(SerializeNpy(read), SerializeNpy(tensor));
  }
  std::filesystem::remove(path);
  for (const DType dtype :
       {DType::kF64, DType::kF16, DType::kI8, DType::kU8, DType::kI32, DType::kI64}) {
    const Tensor tensor = Tensor::Zeros({3}, dtype, MemoryTag::kOther);
    EXPECT_EQ(ParseNpy(SerializeNpy(tensor), "x", MemoryTag::kOther).dtype(), dtype);
  }
  const Tensor turned = Counting({2, 3}).Transpose(0, 1);
  const Tensor read = ParseNpy(SerializeNpy(turned), "x", MemoryTag::kOther);
  EXPECT_EQ(read.view<float>()(2, 1), 5.0f);
  EXPECT_THROW(SerializeNpy(Tensor::Zeros({1}, DType::kBF16, MemoryTag::kOther)), Error);
}

TEST(Npy, Refuses) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  ASSERT_EQ(Refusal(Bytes(good, 8)), "accepted");
  struct Case {
    std::string bytes, rule;
  };
  const Case cases[] = {
      {"", "begin with"},
      {"PK\x03\x04 not an array", "begin with"},
      {std::string("\x93NUMPY\x04\x00\x00\x00\x00\x00", 12), "version"},
      {std::string("\x93NUMPY\x01\x00\xff\xff{}", 12), "within the file"},
      {std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), "within the file"},
      {Bytes(good, 7), "must have 8 bytes"},
      {Bytes(good, 9), "must have 8 bytes"},
      {Bytes(good + "x", 8), "nothing may follow"},
      {Bytes("", 8), "dictionary"},
      {Bytes("{'descr': '<f4'", 8), "is missing"},
      {Bytes("{'descr", 8), "strings"},
      {Bytes("{'descr': '<f4', 'descr': '<f4'}", 8), "occur once"},
      {Bytes("{'descr': '<f4'}", 8), "must have the keys"},
      {Bytes("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", 8), "descr must be"},
      {Bytes("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", 8), "descr must be"},
      {Bytes("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", 8), "structured"},
      {Bytes("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}", 8), "C order"},
      {Bytes("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", 8), "True or False"},
      {Bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 8), "whole numbers"},
      {Bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,2)}", 8), "at most 4"},
      {Bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999,)}", 8),
       "below 10^18"},
      {Bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 8),
       "2^60"},
      {Bytes("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 2, 800080008000800022, 8)}", 0),
       "2^60"},
      {Bytes("{'other': 1}", 8), "only"},
  };
  for (const Case& c : cases) EXPECT_THAT(Refusal(c.bytes), HasSubstr(c.rule)) << c.bytes;
}

}  // namespace
}  // namespace headlight
