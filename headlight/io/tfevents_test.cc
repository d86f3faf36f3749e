#include "headlight/io/tfevents.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "headlight/io/file.h"

namespace headlight {
namespace {

// RFC 3720, B.4, and the check value of the CRC catalogues.
TEST(TfEvents, Crc32cKnownAnswers) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  std::string counting(32, '\0');
  std::iota(counting.begin(), counting.end(), '\0');
  EXPECT_EQ(Crc32c(counting), 0x46DD794Eu);
}

TEST(TfEvents, FileName) {
  EXPECT_EQ(TfEventsFileName(1700000000.9, "host"), "events.out.tfevents.1700000000.host");
}

uint32_t Word(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, 4);
  return value;
}

uint32_t Unmask(uint32_t masked) {
  const uint32_t rotated = masked - 0xA282EAD8u;
  return (rotated >> 17) | (rotated << 15);
}

// The data of each record, its two checksums checked.
std::vector<std::string> Records(const std::string& bytes) {
  std::vector<std::string> records;
  size_t at = 0;
  while (at < bytes.size()) {
    const uint32_t length = Word(bytes, at);
    EXPECT_EQ(Unmask(Word(bytes, at + 8)), Crc32c(bytes.substr(at, 8)));
    records.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(Unmask(Word(bytes, at + 12 + length)), Crc32c(records.back()));
    at += 16 + length;
  }
  EXPECT_EQ(at, bytes.size());
  return records;
}

TEST(TfEvents, RecordsAreTheProtobufsBytes) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("hl_{}.tfevents", getpid())).string();
  {
    TfEventsWriter writer(path, 1.0);
    writer.Scalar("loss", 0.5, 300, 2.0);
  }
  const int64_t first = static_cast<int64_t>(std::filesystem::file_size(path));
  {
    TfEventsWriter writer(path, 3.0);  // goes on: no second version record
    EXPECT_EQ(writer.bytes(), first);
    writer.Scalar("loss", 0.25, 301, 4.0);
    EXPECT_EQ(writer.bytes(), static_cast<int64_t>(std::filesystem::file_size(path)));
  }
  const std::vector<std::string> records = Records(ReadFile(path));
  ASSERT_EQ(records.size(), 3u);
  // wall_time 1.0 (field 1, fixed64), file_version (field 3).
  EXPECT_EQ(records[0], std::string("\x09\0\0\0\0\0\0\xf0\x3f\x1a\x0d", 11) + "brain.Event:2");
  // wall_time 2.0; step 300 = ac 02; summary { value { tag "loss", simple_value 0.5 } }.
  EXPECT_EQ(records[1], std::string("\x09\0\0\0\0\0\0\0\x40\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04"
                                    "loss\x15\0\0\0\x3f",
                                    27));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace headlight
