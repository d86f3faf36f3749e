#include "headlight/io/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "headlight/base/error.h"

namespace headlight {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// One member of a POSIX ustar archive (IEEE Std 1003.1, pax, "ustar Interchange Format").
std::string TarMember(std::string path, const std::string& bytes, char type = '0',
                      const std::string& link = "") {
  std::string header(512, '\0');
  const auto put = [&header](size_t at, const std::string& value) {
    std::copy(value.begin(), value.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0, path);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", bytes.size()));
  put(136, "00000000000");
  put(148, "        ");
  header[156] = type;
  put(157, link);
  put(257, std::string("ustar\0"
                       "00",
                       8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + '\0');
  std::string member = header + bytes;
  member.resize((member.size() + 511) / 512 * 512, '\0');
  return member;
}

const std::string kTarEnd(1024, '\0');

void AppendLittle(uint32_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>((value >> (8 * i)) & 0xFF));
}

uint32_t Crc32(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

// A zip with one stored member (APPNOTE.TXT 4.3); names are marked as UTF-8.
std::string Zip(const std::string& path, const std::string& bytes) {
  const auto fields = [&](std::string* out) {
    AppendLittle(20, 2, out);      // version needed
    AppendLittle(0x0800, 2, out);  // names are UTF-8
    AppendLittle(0, 2, out);       // stored
    AppendLittle(0, 4, out);       // time and date
    AppendLittle(Crc32(bytes), 4, out);
    AppendLittle(static_cast<uint32_t>(bytes.size()), 4, out);
    AppendLittle(static_cast<uint32_t>(bytes.size()), 4, out);
    AppendLittle(static_cast<uint32_t>(path.size()), 2, out);
    AppendLittle(0, 2, out);
  };
  std::string zip = "PK\x03\x04";
  fields(&zip);
  zip += path + bytes;
  const auto directory_at = static_cast<uint32_t>(zip.size());
  std::string directory = "PK\x01\x02";
  AppendLittle(20, 2, &directory);
  fields(&directory);
  AppendLittle(0, 2, &directory);  // comment
  AppendLittle(0, 2, &directory);  // disk
  AppendLittle(0, 2, &directory);
  AppendLittle(0, 4, &directory);
  AppendLittle(0, 4, &directory);  // offset of the member
  directory += path;
  zip += directory + "PK\x05\x06";
  AppendLittle(0, 4, &zip);
  AppendLittle(1, 2, &zip);
  AppendLittle(1, 2, &zip);
  AppendLittle(static_cast<uint32_t>(directory.size()), 4, &zip);
  AppendLittle(directory_at, 4, &zip);
  AppendLittle(0, 2, &zip);
  return zip;
}

std::vector<std::pair<std::string, std::string>> ReadAll(const std::string& bytes,
                                                         const ArchiveLimits& limits = {}) {
  ArchiveReader reader = ArchiveReader::OpenMemory(bytes, "a.tar", limits);
  std::vector<std::pair<std::string, std::string>> members;
  std::string path;
  while (reader.Next(&path)) members.emplace_back(path, reader.Read());
  return members;
}

std::string MessageOf(const std::string& bytes, const ArchiveLimits& limits = {}) {
  try {
    ReadAll(bytes, limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

TEST(ArchiveTest, TarMembersInOrder) {
  const std::string tar = TarMember("./d/", "", '5') + TarMember("./d//b.txt", "bee") +
                          TarMember("d/a.txt", "") + TarMember("d/好.txt", "text") + kTarEnd;
  EXPECT_TRUE(LooksLikeArchive(tar));
  EXPECT_THAT(ReadAll(tar),
              ElementsAre(Pair("d/b.txt", "bee"), Pair("d/a.txt", ""), Pair("d/好.txt", "text")));
}

TEST(ArchiveTest, ZipWithUtf8Name) {
  const std::string zip = Zip("好/文.txt", "text");
  EXPECT_TRUE(LooksLikeArchive(zip));
  EXPECT_THAT(ReadAll(zip), ElementsAre(Pair("好/文.txt", "text")));
}

TEST(ArchiveTest, LinksAreNotFollowed) {
  const std::string tar = TarMember("d/link", "", '2', "/etc/passwd") +
                          TarMember("d/hard", "", '1', "d/x") + TarMember("d/x", "x") + kTarEnd;
  EXPECT_THAT(ReadAll(tar), ElementsAre(Pair("d/x", "x")));
}

TEST(ArchiveTest, PathsStayInside) {
  for (const char* path : {"../x", "a/../../x", "/etc/x"}) {
    EXPECT_THAT(MessageOf(TarMember(path, "x") + kTarEnd), HasSubstr("must stay inside")) << path;
  }
}

TEST(ArchiveTest, SizesAreBounded) {
  const std::string tar =
      TarMember("d/a", std::string(3000, 'a')) + TarMember("d/b", std::string(3000, 'b')) + kTarEnd;
  EXPECT_EQ(ReadAll(tar).size(), 2u);
  ArchiveLimits limits;
  limits.max_member_bytes = 2999;
  EXPECT_THAT(MessageOf(tar, limits), HasSubstr("a.tar:d/a: unpacks to more"));
  limits = {};
  limits.max_total_bytes = 5999;
  EXPECT_THAT(MessageOf(tar, limits), HasSubstr("a.tar:d/b: unpacks to more"));
  limits = {};
  limits.max_members = 1;
  EXPECT_THAT(MessageOf(tar, limits), HasSubstr("more than 1 members"));
  // A member that nobody reads counts too.
  limits = {};
  limits.max_total_bytes = 2000;
  ArchiveReader reader = ArchiveReader::OpenMemory(tar, "a.tar", limits);
  std::string path;
  EXPECT_THROW(reader.Next(&path), Error);
}

TEST(ArchiveTest, BrokenArchives) {
  EXPECT_THAT(MessageOf("this is no archive at all"), HasSubstr("a.tar"));
  const std::string tar = TarMember("d/a", std::string(3000, 'a')) + kTarEnd;
  EXPECT_THAT(MessageOf(tar.substr(0, 1500)), HasSubstr("cannot be unpacked"));
  EXPECT_THAT(MessageOf("\x1F\x8B\x08 broken"), HasSubstr("a.tar"));
  // Cut in the next header, where libarchive gives no cause.
  const std::string zip = Zip("d/a", "text");
  EXPECT_THAT(MessageOf(zip.substr(0, zip.find("PK\x01\x02") + 2)),
              HasSubstr("a.tar: broken: it is damaged or ends early"));
  EXPECT_THROW(ArchiveReader::OpenFile("/nonexistent.tar"), Error);
}

}  // namespace
}  // namespace headlight
