#include "headlight/base/error.h"

namespace headlight {

const char* ErrorKindName(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kInput:
      return "input";
    case ErrorKind::kShape:
      return "shape";
    case ErrorKind::kNumeric:
      return "numeric";
    case ErrorKind::kResource:
      return "resource";
    case ErrorKind::kInternal:
      return "internal";
    case ErrorKind::kInterrupted:
      return "interrupted";
  }
  return "internal";
}

std::string Error::WithVisibleZeros(std::string message) {
  for (size_t at = 0; (at = message.find('\0', at)) != std::string::npos;) {
    message.replace(at, 1, "␀");
  }
  return message;
}

}  // namespace headlight
