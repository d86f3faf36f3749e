#include "apps/headlight/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "headlight/base/error.h"
#include "headlight/report/width.h"

namespace headlight::app {
namespace {

// Where the UTF-8 character that `at` lies in begins.
size_t CharacterBegin(std::string_view text, size_t at) {
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace

bool AnsiOnStdout() {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
}

int TerminalColumns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void PrintTable(const Table& table) { PrintBytes(TableAsText(table, {AnsiOnStdout(), 0})); }

void PrintBytes(const std::string& bytes) {
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  if (std::ferror(stdout) != 0) FlushStdout();
}

std::string PrintableMessage(std::string_view message) {
  constexpr size_t kMostBytes = 2000;
  constexpr size_t kLastBytes = 500;  // what to do stands at the end
  std::string shown;
  for (size_t begin = 0; begin <= message.size();) {
    const size_t end = std::min(message.find('\n', begin), message.size());
    if (begin > 0) shown.push_back('\n');
    shown += Printable(message.substr(begin, end - begin));
    begin = end + 1;
  }
  if (shown.size() <= kMostBytes) return shown;
  const size_t left_out = CharacterBegin(shown, kMostBytes - kLastBytes);
  const size_t last = CharacterBegin(shown, shown.size() - kLastBytes);
  return shown.replace(left_out, last - left_out, "…");
}

void FlushStdout() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw Error(ErrorKind::kResource, "standard output could not be written");
  }
}

}  // namespace headlight::app
