// Members of a .tar (plain, gzip, bzip2, xz, zstd) or .zip, one after another, never written to
// disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace headlight {

// What an archive may grow to when unpacked; beyond it Error kInput.
struct ArchiveLimits {
  int64_t max_members = 5'000'000;
  int64_t max_member_bytes = int64_t{256} << 20;
  int64_t max_total_bytes = int64_t{4} << 30;
};

class ArchiveReader {
 public:
  // Throws kInput when the file cannot be opened.
  static ArchiveReader OpenFile(const std::string& path, const ArchiveLimits& limits = {});
  // `bytes` must outlive the reader; `name` is for messages.
  static ArchiveReader OpenMemory(std::string_view bytes, const std::string& name,
                                  const ArchiveLimits& limits = {});
  ArchiveReader(ArchiveReader&&) noexcept;
  ArchiveReader& operator=(ArchiveReader&&) noexcept;
  ~ArchiveReader();

  // Goes to the next regular file; false at the end. `member` becomes its path with "/" between
  // parts and without "./". Links, devices and directories are passed over. Throws kInput for a
  // broken archive and for a path that is absolute or goes up ("..").
  bool Next(std::string* member);
  // The bytes of the present member; once per member. Throws kInput when it is broken, encrypted,
  // or too large.
  std::string Read();

 private:
  struct State;
  explicit ArchiveReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// True when the bytes begin as a compressed file, a zip or a tar does.
bool LooksLikeArchive(std::string_view bytes);

}  // namespace headlight
