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

}  // namespace headlight
