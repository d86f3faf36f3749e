#include "headlight/io/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <locale.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "headlight/base/error.h"

namespace headlight {
namespace {

constexpr size_t kReadBlock = size_t{64} << 10;
// ARCHIVE_ERRNO_FILE_FORMAT, which libarchive's header does not give away.
#ifdef EFTYPE
constexpr int kUnknownFormat = EFTYPE;
#else
constexpr int kUnknownFormat = EILSEQ;
#endif

// "./a//b/" -> "a/b". Throws when the path could mean a place outside of the archive.
std::string CleanPath(std::string_view path, const std::string& archive_name) {
  std::string clean;
  bool outside = path.starts_with('/') || path.find('\0') != std::string_view::npos;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    outside = outside || part == "..";
    if (!clean.empty()) clean.push_back('/');
    clean.append(part);
  }
  if (outside || clean.empty()) {
    throw Error(ErrorKind::kInput, "archive: {}: a member's path must stay inside, found '{}'",
                archive_name, path);
  }
  return clean;
}

// What libarchive says of an archive that ends early is nothing, for some of its formats, or clear
// only to those who know zlib and liblzma.
std::string CauseFrom(std::string_view detail) {
  if (detail.empty()) return "it is damaged or ends early";
  const bool unclear =
      detail.starts_with("ZIP decompression failed") || detail.ends_with("No progress is possible");
  return fmt::format("{}{}", unclear ? "it is damaged or ends early: " : "", detail);
}

// libarchive converts the names of members to the charset of the thread's locale, and loses those
// that do not fit. For as long as this lives, the locale is one where every name fits.
class Utf8Locale {
 public:
  Utf8Locale() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_ != nullptr) previous_ = uselocale(locale_);
  }
  ~Utf8Locale() {
    if (locale_ == nullptr) return;
    uselocale(previous_);
    freelocale(locale_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t locale_;
  locale_t previous_ = nullptr;
};

}  // namespace

struct ArchiveReader::State {
  State(std::string archive_name, const ArchiveLimits& archive_limits)
      : handle(archive_read_new()), name(std::move(archive_name)), limits(archive_limits) {
    if (handle == nullptr) {
      throw Error(ErrorKind::kResource, "archive: {}: no memory for a reader", name);
    }
    archive_read_support_format_tar(handle);
    archive_read_support_format_zip(handle);
    archive_read_support_filter_gzip(handle);
    archive_read_support_filter_bzip2(handle);
    archive_read_support_filter_xz(handle);
    archive_read_support_filter_zstd(handle);
  }
  ~State() { archive_read_free(handle); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[noreturn]] void Fail(ErrorKind kind, const char* what) const {
    if (archive_errno(handle) == kUnknownFormat && archive_format(handle) == 0) {
      throw Error(
          ErrorKind::kInput,
          "archive: {}: neither a tar nor a zip, which alone are read (.tar.gz, .zip); unpack "
          "a single compressed file first (gunzip)",
          name);
    }
    const char* detail = archive_error_string(handle);
    throw Error(kind, "archive: {}{}{}: {}: {}", name, member.empty() ? "" : ":", member, what,
                CauseFrom(detail == nullptr ? "" : detail));
  }

  struct archive* handle;
  std::string name;
  ArchiveLimits limits;
  std::string member;
  int64_t members = 0;
  int64_t total_bytes = 0;
};

ArchiveReader::ArchiveReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
ArchiveReader::ArchiveReader(ArchiveReader&&) noexcept = default;
ArchiveReader& ArchiveReader::operator=(ArchiveReader&&) noexcept = default;
ArchiveReader::~ArchiveReader() = default;

ArchiveReader ArchiveReader::OpenFile(const std::string& path, const ArchiveLimits& limits) {
  auto state = std::make_unique<State>(path, limits);
  if (archive_read_open_filename(state->handle, path.c_str(), kReadBlock) != ARCHIVE_OK) {
    state->Fail(ErrorKind::kInput, "cannot be opened");
  }
  return ArchiveReader(std::move(state));
}

ArchiveReader ArchiveReader::OpenMemory(std::string_view bytes, const std::string& name,
                                        const ArchiveLimits& limits) {
  auto state = std::make_unique<State>(name, limits);
  if (archive_read_open_memory(state->handle, bytes.data(), bytes.size()) != ARCHIVE_OK) {
    state->Fail(ErrorKind::kInput, "is not an archive");
  }
  return ArchiveReader(std::move(state));
}

bool ArchiveReader::Next(std::string* member) {
  const Utf8Locale locale;
  for (;;) {
    state_->member.clear();
    struct archive_entry* entry = nullptr;
    const int result = archive_read_next_header(state_->handle, &entry);
    if (result == ARCHIVE_EOF) return false;
    // ARCHIVE_WARN: something about the member is odd, a name that is not UTF-8 say.
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) {
      state_->Fail(ErrorKind::kInput, "broken");
    }
    if (++state_->members > state_->limits.max_members) {
      throw Error(ErrorKind::kInput, "archive: {}: more than {} members", state_->name,
                  state_->limits.max_members);
    }
    // Passing over a member unpacks it too, so a bomb is refused before that.
    if (archive_entry_size(entry) > state_->limits.max_total_bytes ||
        archive_filter_bytes(state_->handle, 0) > 2 * state_->limits.max_total_bytes) {
      throw Error(ErrorKind::kInput, "archive: {}: unpacks to more than is allowed ({} bytes)",
                  state_->name, state_->limits.max_total_bytes);
    }
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) {
      continue;
    }
    const char* path = archive_entry_pathname_utf8(entry);
    if (path == nullptr) path = archive_entry_pathname(entry);
    if (path == nullptr) {
      throw Error(ErrorKind::kInput, "archive: {}: member {} has no readable name", state_->name,
                  state_->members);
    }
    state_->member = CleanPath(path, state_->name);
    *member = state_->member;
    return true;
  }
}

std::string ArchiveReader::Read() {
  const ArchiveLimits& limits = state_->limits;
  std::string bytes;
  std::array<char, kReadBlock> block;
  for (;;) {
    const la_ssize_t count = archive_read_data(state_->handle, block.data(), block.size());
    if (count < 0) state_->Fail(ErrorKind::kInput, "cannot be unpacked");
    if (count == 0) return bytes;
    bytes.append(block.data(), static_cast<size_t>(count));
    state_->total_bytes += count;
    if (static_cast<int64_t>(bytes.size()) > limits.max_member_bytes ||
        state_->total_bytes > limits.max_total_bytes) {
      throw Error(ErrorKind::kInput,
                  "archive: {}:{}: unpacks to more than is allowed ({} bytes a member, {} in all)",
                  state_->name, state_->member, limits.max_member_bytes, limits.max_total_bytes);
    }
  }
}

bool LooksLikeArchive(std::string_view bytes) {
  using std::string_view_literals::operator""sv;
  constexpr size_t kTarMagic = 257;
  return bytes.starts_with("\x1F\x8B") || bytes.starts_with("BZh") ||
         bytes.starts_with(
             "\xFD"
             "7zXZ\0"sv) ||
         bytes.starts_with("\x28\xB5\x2F\xFD") || bytes.starts_with("PK\x03\x04") ||
         bytes.starts_with("PK\x05\x06") ||
         (bytes.size() > kTarMagic && bytes.substr(kTarMagic).starts_with("ustar"));
}

}  // namespace headlight
