#include "headlight/io/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "headlight/base/error.h"

namespace headlight {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class File : public testing::Test {
 protected:
  File() : folder_(fs::temp_directory_path() / fmt::format("headlight_file_{}", getpid())) {
    fs::create_directories(folder_);
  }
  ~File() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  size_t FilesInFolder() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

// Runs `action` and returns the kind and message of its Error.
template <typename Action>
std::pair<ErrorKind, std::string> ErrorOf(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  ADD_FAILURE() << "no Error";
  return {ErrorKind::kInternal, ""};
}

// While it lives, no file may grow over `bytes`: what a full disk looks like to a program.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_limit_);
    rlimit limit = old_limit_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*old_handler_)(int);
  rlimit old_limit_{};
};

TEST_F(File, WritesAndReplaces) {
  const std::string bytes("a\0b\n", 4);
  WriteFileAtomically(Path("x"), bytes);
  EXPECT_EQ(ReadFile(Path("x")), bytes);
  WriteFileAtomically(Path("x"), std::vector<std::string_view>{"one", "", "two"});
  EXPECT_EQ(ReadFile(Path("x")), "onetwo");
  WriteFileAtomically(Path("x"), "");
  EXPECT_EQ(ReadFile(Path("x")), "");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(File, StagedFilesAppearWhenCommitted) {
  WriteFileAtomically(Path("x"), "old");
  {
    StagedFile x(Path("x"), "new");
    StagedFile y(Path("y"), "other");
    EXPECT_EQ(ReadFile(Path("x")), "old");
    EXPECT_FALSE(fs::exists(Path("y")));
    x.Commit();
  }
  EXPECT_EQ(ReadFile(Path("x")), "new");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(File, ReadRefuses) {
  const auto missing = ErrorOf([&] { ReadFile(Path("none")); });
  EXPECT_EQ(missing.first, ErrorKind::kInput);
  EXPECT_THAT(missing.second, HasSubstr(Path("none")));
  EXPECT_THAT(missing.second, HasSubstr("No such file"));
  EXPECT_EQ(ErrorOf([&] { ReadFile(folder_.string()); }).first, ErrorKind::kInput);
  fs::create_symlink("loop", Path("loop"));
  EXPECT_EQ(ErrorOf([&] { ReadFile(Path("loop")); }).first, ErrorKind::kInput);
  WriteFileAtomically(Path("x"), "12345");
  EXPECT_EQ(ReadFile(Path("x"), 5), "12345");
  EXPECT_THAT(ErrorOf([&] { ReadFile(Path("x"), 4); }).second, HasSubstr("at most 4 bytes"));
  // Has no size of its own, and never ends.
  EXPECT_THAT(ErrorOf([&] { ReadFile("/dev/zero", 100000); }).second, HasSubstr("at most 100000"));
}

TEST_F(File, FullDiskLeavesTheOldFileAndNothingElse) {
  WriteFileAtomically(Path("x"), "old");
  {
    const FileSizeLimit limit(1000);
    const auto error = ErrorOf([&] { WriteFileAtomically(Path("x"), std::string(2000, 'n')); });
    EXPECT_EQ(error.first, ErrorKind::kResource);
    EXPECT_THAT(error.second, HasSubstr(Path("x")));
  }
  EXPECT_EQ(ReadFile(Path("x")), "old");
  EXPECT_EQ(FilesInFolder(), 1u);
  const auto full = ErrorOf([] { WriteFileAtomically("/dev/full", "x"); });
  EXPECT_EQ(full.first, ErrorKind::kResource);
  EXPECT_THAT(full.second, HasSubstr("/dev/full: No space left"));
}

TEST_F(File, WriteRefuses) {
  const auto no_folder = ErrorOf([&] { WriteFileAtomically(Path("none/x"), "x"); });
  EXPECT_EQ(no_folder.first, ErrorKind::kResource);
  EXPECT_THAT(no_folder.second, HasSubstr("none/x: No such file or directory"));
  const auto folder = ErrorOf([&] { WriteFileAtomically(folder_.string(), "x"); });
  EXPECT_EQ(folder.first, ErrorKind::kResource);
  EXPECT_THAT(folder.second, HasSubstr("Is a directory"));
  EXPECT_EQ(ErrorOf([] { WriteFileAtomically("", "x"); }).first, ErrorKind::kUsage);
  EXPECT_EQ(FilesInFolder(), 0u);
  if (geteuid() == 0) return;  // root may write everywhere
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  const auto error = ErrorOf([&] { WriteFileAtomically(Path("x"), "x"); });
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_EQ(error.first, ErrorKind::kResource);
  EXPECT_THAT(error.second, HasSubstr("Permission denied"));
}

TEST_F(File, AppendedRecordsAreWholeEvenWhenTheDiskFills) {
  AppendWriter writer(Path("x"));
  writer.AppendLine("one");
  {
    const FileSizeLimit limit(10);
    EXPECT_EQ(ErrorOf([&] { writer.AppendLine("much too long"); }).first, ErrorKind::kResource);
  }
  writer.AppendLine("two");
  writer.Sync();
  EXPECT_EQ(ReadFile(Path("x")), "one\ntwo\n");
  EXPECT_EQ(writer.bytes(), 8);
  EXPECT_EQ(ErrorOf([&] { writer.AppendLine("a\nb"); }).first, ErrorKind::kInternal);
  AppendWriter second = std::move(writer);
  second.AppendLine("three");
  EXPECT_FALSE(
      writer.is_open());  // NOLINT(bugprone-use-after-move): what a move leaves is promised
  EXPECT_EQ(AppendWriter(Path("x")).bytes(), 14);
}

TEST_F(File, CutsBack) {
  WriteFileAtomically(Path("x"), "one\n\nthree\ntorn");
  EXPECT_EQ(CompleteLinesEnd(Path("x")), 11);
  EXPECT_THAT(ErrorOf([&] { CutLines(Path("x"), 4); }).second, HasSubstr("4 complete lines"));
  CutLines(Path("x"), 2);
  EXPECT_EQ(ReadFile(Path("x")), "one\n\n");
  CutFile(Path("x"), 2);
  EXPECT_EQ(ReadFile(Path("x")), "on");
  EXPECT_EQ(ErrorOf([&] { CutFile(Path("x"), 3); }).first, ErrorKind::kInput);
  CutLines(Path("x"), 0);
  EXPECT_EQ(ReadFile(Path("x")), "");
}

}  // namespace
}  // namespace headlight
