// Runs a fuzz target once over each file of a folder, and over each prefix-cut and byte-changed
// form of it: what every build can do without libFuzzer.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<uint8_t> ReadBytes(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// At most this many cuts and changes of one file, evenly spaced.
constexpr size_t kVariants = 32;

void RunFile(std::vector<uint8_t> bytes) {
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  const size_t step = std::max<size_t>(1, bytes.size() / kVariants);
  for (size_t at = 0; at < bytes.size(); at += step) {
    LLVMFuzzerTestOneInput(bytes.data(), at);
    const uint8_t kept = bytes[at];
    for (const int change : {0x00, 0xFF, kept ^ 0x80}) {
      bytes[at] = static_cast<uint8_t>(change);
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    bytes[at] = kept;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) RunFile(ReadBytes(file));
  std::printf("%zu files\n", files.size());
  return files.empty() ? 1 : 0;
}
