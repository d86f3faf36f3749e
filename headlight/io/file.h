// Files that appear whole or not at all, and line files that survive a crash.
//
// A file to read that is missing, or a folder or a link to itself in its place, is an Error of kind
// kInput. Every other failure of the system (no folder to write to, full disk, no permission) is
// kResource. The message names the path and the cause.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headlight {

inline constexpr int64_t kDefaultReadLimit = int64_t{4} << 30;  // bytes

// The bytes of a regular file (or of a pipe, read to its end). A file that does not exist or is a
// folder is kInput, as is one of more than max_bytes: it is refused before memory for it is taken.
std::string ReadFile(const std::string& path, int64_t max_bytes = kDefaultReadLimit);

// The same of a regular file only: a pipe in the place of a file of ours would be waited for.
std::string ReadRegularFile(const std::string& path, int64_t max_bytes = kDefaultReadLimit);

// Reads a regular file piece by piece, for formats that go straight into their own memory.
class FileReader {
 public:
  // Errors as ReadFile's; kInput for what is not a regular file.
  FileReader(const std::string& path, int64_t max_bytes);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  int64_t bytes() const { return bytes_; }
  // The next `count` bytes. kInput when the file ends before.
  void Read(char* target, int64_t count);

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
};

// A file that is on the disk under a temporary name in its folder: several that belong together are
// all staged before the first is committed. Destroyed before that, it leaves nothing. The folder
// must exist. What stands at `path` and is no regular file (a pipe, a device) is written at once.
class StagedFile {
 public:
  // Write, fsync. The file is the concatenation of `parts`.
  StagedFile(const std::string& path, std::string_view bytes);
  StagedFile(const std::string& path, std::span<const std::string_view> parts);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  // Rename to `path`, fsync of the folder.
  void Commit();

 private:
  std::string path_;
  std::string temporary_;  // empty: there is none (any more)
};

// Writes `path` so that a reader (or a crash) sees the old file or the new one, never a part, by
// way of a StagedFile. On failure the old file stands and no temporary file is left.
void WriteFileAtomically(const std::string& path, std::string_view bytes);
// The same for bytes that lie in several places: the file is their concatenation.
void WriteFileAtomically(const std::string& path, std::span<const std::string_view> parts);

// Appends to a file; each call is one write() of everything it was given, so that a killed process
// leaves whole records (and at most one torn one when the machine itself dies; CutLines and
// CompleteLinesEnd deal with it).
class AppendWriter {
 public:
  AppendWriter() = default;  // closed
  // Opens (creates if need be) for appending.
  explicit AppendWriter(const std::string& path);
  ~AppendWriter();
  AppendWriter(AppendWriter&& other) noexcept;
  AppendWriter& operator=(AppendWriter&& other) noexcept;

  bool is_open() const { return descriptor_ >= 0; }
  // Bytes in the file: the length to give to CutFile when what follows is to be undone.
  int64_t bytes() const { return bytes_; }

  void Append(std::string_view bytes);
  // One line; `line` must not hold a line break (kInternal). The break is added.
  void AppendLine(std::string_view line);
  // Returns when what was appended is on the disk.
  void Sync();
  void Close();

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
};

// Cuts a file back to its first `bytes` bytes (fsynced). kInput when the file is shorter than that.
void CutFile(const std::string& path, int64_t bytes);

// Cuts a line file back to its first `lines` lines. kInput when it has fewer complete ones.
void CutLines(const std::string& path, int64_t lines);

// Where the last complete line ends, in bytes: a torn last line begins there. 0 for no lines.
int64_t CompleteLinesEnd(const std::string& path);

}  // namespace headlight
