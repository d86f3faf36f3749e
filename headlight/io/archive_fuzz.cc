// Any bytes as an archive: members inside their limits or Error, nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "headlight/base/error.h"
#include "headlight/io/archive.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(data, data + size);
  headlight::ArchiveLimits limits;
  limits.max_members = 100;
  limits.max_member_bytes = int64_t{1} << 20;
  limits.max_total_bytes = int64_t{4} << 20;
  try {
    headlight::ArchiveReader reader = headlight::ArchiveReader::OpenMemory(bytes, "fuzz", limits);
    std::string member;
    bool read = true;
    while (reader.Next(&member)) {
      if (member.empty() || member.front() == '/' ||
          ("/" + member + "/").find("/../") != std::string::npos) {
        std::abort();
      }
      // Every other member is passed over.
      if (read && static_cast<int64_t>(reader.Read().size()) > limits.max_member_bytes)
        std::abort();
      read = !read;
    }
  } catch (const headlight::Error&) {
  }
  return 0;
}
