// JSON lines: one object a line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headlight {

struct JsonlRecord {
  // The fields of the object whose values are strings, numbers, or booleans, as text and in order;
  // a number as it is written. Others (null, lists, objects) are left out. Of two fields of one
  // name the last one holds.
  std::vector<std::pair<std::string, std::string>> fields;
  int64_t line = 0;  // from 1

  // Null when there is none.
  const std::string* Find(std::string_view name) const;
};

// Reads records from bytes in memory, which must outlive it.
class JsonlReader {
 public:
  // `name` is the file's name for messages.
  JsonlReader(std::string_view bytes, std::string name);

  // False at the end. Empty lines are skipped. Throws kInput, naming file and line, for a line that
  // is not one JSON object.
  bool Next(JsonlRecord* record);

 private:
  std::string_view bytes_;
  std::string name_;
  size_t position_ = 0;
  int64_t line_ = 0;
};

}  // namespace headlight
