// Progress of a long job, shown by whoever runs it.
//
// The library reports; what is drawn, and where, is up to the Progress that the caller passes.
// TerminalProgress draws one line that it keeps rewriting, and nothing at all when the stream is
// not a terminal.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace headlight {

struct ProgressState {
  std::string title;  // "epoch 2/10"
  int64_t done = 0;   // of the whole job
  int64_t total = 0;  // 0: unknown
  // Shown in this order after the bar: {"loss", "0.412"}, {"tokens/s", "21.3k"}.
  std::vector<std::pair<std::string, std::string>> values;
};

class Progress {
 public:
  virtual ~Progress() = default;
  // Called often (each step): must return quickly.
  virtual void Update(const ProgressState& state) = 0;
  // A line that stays: "epoch 2/10: train loss 0.41, valid loss 0.52, accuracy 0.81".
  virtual void Message(const std::string& line) = 0;
  // The job is over, or has failed.
  virtual void Finish() = 0;
};

// Draws on `stream` (stderr). On a terminal: a bar with the time left, at most ten times a second,
// coloured unless NO_COLOR is set to something. Elsewhere: only the messages.
class TerminalProgress : public Progress {
 public:
  explicit TerminalProgress(std::FILE* stream);
  ~TerminalProgress() override;
  void Update(const ProgressState& state) override;
  void Message(const std::string& line) override;
  void Finish() override;

 private:
  void Clear();

  std::FILE* const stream_;
  const bool terminal_;
  const bool colour_;
  bool drawn_ = false;
  double started_ = -1;
  int64_t started_at_ = 0;  // `done` at the first update: a resumed job does not start at 0
  double last_drawn_ = 0;
};

// The line that TerminalProgress draws, without colour, in `width` columns: the bar shrinks, then
// the end is cut. `seconds` have passed since `state.done` was `started_at`.
std::string ProgressLine(const ProgressState& state, int64_t started_at, double seconds, int width);

// "1:05", "2:03:40"
std::string FormatDuration(double seconds);
// "950", "21.3k", "1.24M"
std::string FormatRate(double per_second);

}  // namespace headlight
