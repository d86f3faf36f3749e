#include "headlight/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "headlight/base/error.h"

namespace headlight {
namespace {

[[noreturn]] void ThrowSystem(ErrorKind kind, const char* operation, const std::string& path,
                              int code) {
  throw Error(kind, "{} {}: {}", operation, path, std::generic_category().message(code));
}

// Of what needs a file that exists.
[[noreturn]] void ThrowRead(const std::string& path, int code, const char* operation = "read") {
  const bool input = code == ENOENT || code == ENOTDIR || code == EISDIR || code == ELOOP;
  ThrowSystem(input ? ErrorKind::kInput : ErrorKind::kResource, operation, path, code);
}

[[noreturn]] void ThrowWrite(const char* operation, const std::string& path, int code) {
  ThrowSystem(ErrorKind::kResource, operation, path, code);
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  int Release() { return std::exchange(value_, -1); }
  // Closes and returns what close() said: some file systems report a full disk only here.
  int Close() { return close(Release()); }

 private:
  int value_;
};

int OpenRetrying(const char* path, int flags, mode_t mode = 0) {
  int descriptor = -1;
  do {
    descriptor = open(path, flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

// 0, or the error code. `written` counts what arrived.
int WriteAll(int descriptor, std::string_view bytes, int64_t* written = nullptr) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<size_t>(count));
    if (written != nullptr) *written += count;
  }
  return 0;
}

int WriteParts(int descriptor, std::span<const std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (const int code = WriteAll(descriptor, part); code != 0) return code;
  }
  return 0;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string TemporaryName(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}.tmp.{}.{}", path, getpid(), counter.fetch_add(1));
}

void SyncFolder(const std::string& folder, const std::string& path) {
  const Descriptor descriptor(OpenRetrying(folder.c_str(), O_RDONLY | O_DIRECTORY));
  // A folder that may be written but not read cannot be opened; the rename stands all the same.
  if (descriptor.get() < 0) return;
  if (fsync(descriptor.get()) != 0 && errno != EINVAL && errno != EROFS) {
    ThrowWrite("write", path, errno);
  }
}

// A pipe or a device cannot be replaced by a rename (and must not be: /dev/stdout).
bool WriteToSpecialFile(const std::string& path, std::span<const std::string_view> parts) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return false;
  if (S_ISDIR(status.st_mode)) ThrowWrite("write", path, EISDIR);
  Descriptor descriptor(OpenRetrying(path.c_str(), O_WRONLY));
  if (descriptor.get() < 0) ThrowWrite("write", path, errno);
  if (const int code = WriteParts(descriptor.get(), parts); code != 0) {
    ThrowWrite("write", path, code);
  }
  if (descriptor.Close() != 0) ThrowWrite("write", path, errno);
  return true;
}

// Writes to a file without a name and names it `temporary` when it is complete, so that a killed
// process leaves nothing. False where the file system or a missing /proc does not allow it.
bool WriteNameless(const std::string& path, const std::string& temporary,
                   std::span<const std::string_view> parts) {
  const Descriptor descriptor(OpenRetrying(FolderOf(path).c_str(), O_WRONLY | O_TMPFILE, 0666));
  if (descriptor.get() < 0) return false;
  const std::string link_path = fmt::format("/proc/self/fd/{}", descriptor.get());
  if (access(link_path.c_str(), F_OK) != 0) return false;
  if (const int code = WriteParts(descriptor.get(), parts); code != 0) {
    ThrowWrite("write", path, code);
  }
  if (fsync(descriptor.get()) != 0) ThrowWrite("write", path, errno);
  return linkat(AT_FDCWD, link_path.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

void WriteNamed(const std::string& path, const std::string& temporary,
                std::span<const std::string_view> parts) {
  Descriptor descriptor(OpenRetrying(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666));
  if (descriptor.get() < 0) ThrowWrite("write", path, errno);
  int code = WriteParts(descriptor.get(), parts);
  if (code == 0 && fsync(descriptor.get()) != 0) code = errno;
  if (descriptor.Close() != 0 && code == 0) code = errno;
  if (code != 0) {
    unlink(temporary.c_str());
    ThrowWrite("write", path, code);
  }
}

}  // namespace

std::string ReadFile(const std::string& path, int64_t max_bytes) {
  const Descriptor descriptor(OpenRetrying(path.c_str(), O_RDONLY));
  if (descriptor.get() < 0) ThrowRead(path, errno);
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0) ThrowRead(path, errno);
  if (S_ISDIR(status.st_mode)) ThrowRead(path, EISDIR);
  const int64_t known = S_ISREG(status.st_mode) ? status.st_size : 0;
  std::string bytes;
  size_t filled = 0;
  for (;;) {
    if (known > max_bytes || static_cast<int64_t>(filled) > max_bytes) {
      throw Error(ErrorKind::kInput, "read {}: the file must have at most {} bytes, found {}", path,
                  max_bytes, known > max_bytes ? fmt::format("{}", known) : "more");
    }
    // One byte more than the known size, so that the end is seen without growing.
    if (bytes.size() == filled) {
      bytes.resize(filled == 0 && known > 0 ? static_cast<size_t>(known) + 1
                                            : filled + filled / 2 + 65536);
    }
    const ssize_t count = read(descriptor.get(), bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) ThrowRead(path, errno);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  bytes.resize(filled);
  return bytes;
}

FileReader::FileReader(const std::string& path, int64_t max_bytes) : path_(path) {
  Descriptor descriptor(OpenRetrying(path.c_str(), O_RDONLY | O_NONBLOCK));
  if (descriptor.get() < 0) ThrowRead(path, errno);
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0) ThrowRead(path, errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::kInput, "read {}: it must be a regular file", path);
  }
  bytes_ = status.st_size;
  if (bytes_ > max_bytes) {
    throw Error(ErrorKind::kInput, "read {}: the file must have at most {} bytes, found {}", path,
                max_bytes, bytes_);
  }
  descriptor_ = descriptor.Release();
}

FileReader::~FileReader() {
  if (descriptor_ >= 0) close(descriptor_);
}

void FileReader::Read(char* target, int64_t count) {
  while (count > 0) {
    const size_t wanted = std::min(static_cast<size_t>(count), size_t{1} << 30);
    const ssize_t got = read(descriptor_, target, wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) ThrowRead(path_, errno);
    if (got == 0) throw Error(ErrorKind::kInput, "read {}: the file ended early", path_);
    target += got;
    count -= got;
  }
}

std::string ReadRegularFile(const std::string& path, int64_t max_bytes) {
  FileReader reader(path, max_bytes);
  std::string bytes(static_cast<size_t>(reader.bytes()), '\0');
  reader.Read(bytes.data(), reader.bytes());
  return bytes;
}

void WriteFileAtomically(const std::string& path, std::string_view bytes) {
  StagedFile(path, bytes).Commit();
}

void WriteFileAtomically(const std::string& path, std::span<const std::string_view> parts) {
  StagedFile(path, parts).Commit();
}

StagedFile::StagedFile(const std::string& path, std::string_view bytes)
    : StagedFile(path, std::span<const std::string_view>(&bytes, 1)) {}

StagedFile::StagedFile(const std::string& path, std::span<const std::string_view> parts)
    : path_(path) {
  if (path.empty() || path.back() == '/') {
    throw Error(ErrorKind::kUsage, "write: a path must name a file, found \"{}\"", path);
  }
  if (WriteToSpecialFile(path, parts)) return;
  const std::string temporary = TemporaryName(path);
  if (!WriteNameless(path, temporary, parts)) WriteNamed(path, temporary, parts);
  temporary_ = temporary;
}

StagedFile::~StagedFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void StagedFile::Commit() {
  if (temporary_.empty()) return;
  if (rename(temporary_.c_str(), path_.c_str()) != 0) ThrowWrite("write", path_, errno);
  temporary_.clear();
  SyncFolder(FolderOf(path_), path_);
}

AppendWriter::AppendWriter(const std::string& path) : path_(path) {
  descriptor_ = OpenRetrying(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (descriptor_ < 0) ThrowWrite("append to", path, errno);
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) {
    const int code = errno;
    Close();
    ThrowWrite("append to", path, code);
  }
  bytes_ = status.st_size;
}

AppendWriter::~AppendWriter() { Close(); }

AppendWriter::AppendWriter(AppendWriter&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(std::exchange(other.bytes_, 0)) {}

AppendWriter& AppendWriter::operator=(AppendWriter&& other) noexcept {
  if (this == &other) return *this;
  Close();
  path_ = std::move(other.path_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void AppendWriter::Append(std::string_view bytes) {
  if (!is_open()) throw Error(ErrorKind::kInternal, "append: the file is not open");
  int64_t written = 0;
  const int code = WriteAll(descriptor_, bytes, &written);
  if (code != 0) {
    // The disk is full: take back the part of the record that did fit.
    if (written > 0 && ftruncate(descriptor_, bytes_) != 0) bytes_ += written;
    ThrowWrite("append to", path_, code);
  }
  bytes_ += written;
}

void AppendWriter::AppendLine(std::string_view line) {
  if (line.find('\n') != std::string_view::npos) {
    throw Error(ErrorKind::kInternal, "append to {}: a line must not hold a line break", path_);
  }
  std::string record(line);
  record.push_back('\n');
  Append(record);
}

void AppendWriter::Sync() {
  if (is_open() && fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) {
    ThrowWrite("append to", path_, errno);
  }
}

void AppendWriter::Close() {
  if (is_open()) close(std::exchange(descriptor_, -1));
}

void CutFile(const std::string& path, int64_t bytes) {
  const Descriptor descriptor(OpenRetrying(path.c_str(), O_WRONLY));
  if (descriptor.get() < 0) ThrowRead(path, errno, "cut");
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0) ThrowWrite("cut", path, errno);
  if (bytes < 0 || status.st_size < bytes) {
    throw Error(ErrorKind::kInput, "cut {}: it must have {} bytes at least, found {}", path, bytes,
                int64_t{status.st_size});
  }
  if (ftruncate(descriptor.get(), bytes) != 0 || fsync(descriptor.get()) != 0) {
    ThrowWrite("cut", path, errno);
  }
}

namespace {

struct LineEnd {
  int64_t lines = 0;
  int64_t bytes = 0;  // where the last of them ends
};

// The first `limit` complete lines, in constant memory.
LineEnd FindLineEnd(const std::string& path, int64_t limit) {
  const Descriptor descriptor(OpenRetrying(path.c_str(), O_RDONLY));
  if (descriptor.get() < 0) ThrowRead(path, errno);
  LineEnd end;
  int64_t position = 0;
  std::array<char, 65536> chunk;
  while (end.lines < limit) {
    const ssize_t count = read(descriptor.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) ThrowRead(path, errno);
    if (count == 0) break;
    for (ssize_t i = 0; i < count && end.lines < limit; ++i) {
      if (chunk[static_cast<size_t>(i)] != '\n') continue;
      ++end.lines;
      end.bytes = position + i + 1;
    }
    position += count;
  }
  return end;
}

}  // namespace

void CutLines(const std::string& path, int64_t lines) {
  const LineEnd end = FindLineEnd(path, lines);
  if (end.lines < lines) {
    throw Error(ErrorKind::kInput, "cut {}: it must have {} complete lines at least, found {}",
                path, lines, end.lines);
  }
  CutFile(path, end.bytes);
}

int64_t CompleteLinesEnd(const std::string& path) { return FindLineEnd(path, INT64_MAX).bytes; }

}  // namespace headlight
