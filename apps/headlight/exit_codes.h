// The program's exit codes, as documented in its help.
#pragma once

#include "headlight/base/error.h"

namespace headlight::app {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;         // failed while running
inline constexpr int kExitUsage = 2;          // flags or options that make no sense
inline constexpr int kExitInput = 3;          // data or a file is not what it should be
inline constexpr int kExitCheckFailed = 4;    // a check did not hold
inline constexpr int kExitInterrupted = 130;  // stopped by the user; training saves first

constexpr int ExitCodeOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return kExitUsage;
    case ErrorKind::kInput:
    case ErrorKind::kShape:
      return kExitInput;
    case ErrorKind::kInterrupted:
      return kExitInterrupted;
    case ErrorKind::kNumeric:
    case ErrorKind::kResource:
    case ErrorKind::kInternal:
      return kExitFailed;
  }
  return kExitFailed;
}

}  // namespace headlight::app
