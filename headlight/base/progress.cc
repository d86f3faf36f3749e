#include "headlight/base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "headlight/base/clock.h"

namespace headlight {
namespace {

constexpr double kSecondsBetweenDraws = 0.1;
constexpr int kBarWidth = 24, kLeastBarWidth = 4;

bool ColourWanted() {
  const char* no_color = std::getenv("NO_COLOR");  // https://no-color.org: any non-empty value
  return no_color == nullptr || *no_color == '\0';
}

int TerminalWidth(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

// " [====    ]" of at most `width` columns; nothing where that is too few.
std::string Bar(double share, int width) {
  const int inside = std::min(width - 3, kBarWidth);
  if (inside < kLeastBarWidth) return "";
  const int full = static_cast<int>(share * inside);
  return fmt::format(" [{}{}]", std::string(static_cast<size_t>(full), '='),
                     std::string(static_cast<size_t>(inside - full), ' '));
}

}  // namespace

std::string FormatDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e8) return "-:--";
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string FormatRate(double per_second) {
  if (!std::isfinite(per_second)) return "-";
  if (per_second < 1000) return fmt::format("{:.0f}", per_second);
  if (per_second < 1e6) return fmt::format("{:.1f}k", per_second / 1e3);
  return fmt::format("{:.2f}M", per_second / 1e6);
}

std::string ProgressLine(const ProgressState& state, int64_t started_at, double seconds,
                         int width) {
  const double share =
      state.total > 0
          ? std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0)
          : 0;
  std::string line = state.total > 0 ? fmt::format(" {:3.0f} %", 100 * share) : "";
  for (const auto& [name, value] : state.values) line += fmt::format("  {} {}", name, value);
  const int64_t made = state.done - started_at;
  if (state.total > 0 && made > 0) {
    const double left =
        seconds / static_cast<double>(made) * static_cast<double>(state.total - state.done);
    line += "  " + FormatDuration(left) + " left";
  }
  // Titles and values are ASCII: a byte is a column.
  if (state.total > 0) {
    line.insert(0, Bar(share, width - static_cast<int>(state.title.size() + line.size())));
  }
  line.insert(0, state.title);
  if (line.size() > static_cast<size_t>(std::max(width, 1))) {
    line.resize(static_cast<size_t>(std::max(width, 1)));
  }
  return line;
}

TerminalProgress::TerminalProgress(std::FILE* stream)
    : stream_(stream), terminal_(isatty(fileno(stream)) == 1), colour_(ColourWanted()) {}

TerminalProgress::~TerminalProgress() { Clear(); }

void TerminalProgress::Clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
  drawn_ = false;
}

void TerminalProgress::Update(const ProgressState& state) {
  if (!terminal_) return;
  const double now = MonotonicSeconds();
  if (started_ < 0) {
    started_ = now;
    started_at_ = state.done;
  }
  if (drawn_ && now - last_drawn_ < kSecondsBetweenDraws) return;
  last_drawn_ = now;
  const std::string line =
      ProgressLine(state, started_at_, now - started_, TerminalWidth(fileno(stream_)) - 1);
  const std::string coloured = colour_ ? "\x1b[36m" + line + "\x1b[0m" : line;
  std::fputs(("\r" + coloured + "\x1b[K").c_str(), stream_);
  std::fflush(stream_);
  drawn_ = true;
}

void TerminalProgress::Message(const std::string& line) {
  Clear();
  std::fputs((line + "\n").c_str(), stream_);
  std::fflush(stream_);
}

void TerminalProgress::Finish() { Clear(); }

}  // namespace headlight
