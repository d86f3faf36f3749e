#include "apps/headlight/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "headlight/base/error.h"

namespace headlight::app {

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

void FlushStdout() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw Error(ErrorKind::kResource, "standard output could not be written");
  }
}

}  // namespace headlight::app
