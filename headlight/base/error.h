// The one exception type of the library.
//
// A message names the operation, the rule, and what was found, and where it helps, what to do:
//   throw Error(ErrorKind::kShape, "attention: key head_dim must be {} (as query), found {}", 64,
//   32);
// The library never prints and never exits; the program maps kinds to exit codes (apps/headlight).
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace headlight {

enum class ErrorKind {
  kUsage,        // the caller asked for something that does not make sense (a flag, an option)
  kInput,        // data or a file is not what it should be
  kShape,        // shapes, dtypes or strides do not fit together
  kNumeric,      // a value became non-finite
  kResource,     // the system refused: disk, memory, permission
  kInternal,     // a bug in Headlight
  kInterrupted,  // the user asked to stop; what was done is saved
};

// "usage", "input", ...
const char* ErrorKindName(ErrorKind kind);

class Error : public std::runtime_error {
 public:
  template <typename... Args>
  Error(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(WithVisibleZeros(fmt::format(format, std::forward<Args>(args)...))),
        kind_(kind) {}

  ErrorKind kind() const { return kind_; }

 private:
  // what() would end at a zero byte of a file that the message quotes; it becomes "␀".
  static std::string WithVisibleZeros(std::string message);

  ErrorKind kind_;
};

}  // namespace headlight
