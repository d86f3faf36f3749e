// Labelled texts in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headlight {

struct Example {
  std::string text;    // as it was in the file: nothing is normalised, broken bytes are kept
  std::string label;   // a string of any kind
  std::string origin;  // "file:line", "folder/file", or "archive:member"
};

struct Dataset {
  std::vector<Example> examples;
  std::string format;   // the reader that made it: "csv", "folders", ...
  int64_t dropped = 0;  // rows that DropUnusable took away

  // The distinct labels: by value when all are decimal integers, else by bytes. The empty label
  // (a row without one) is not among them.
  std::vector<std::string> Labels() const;
};

// Removes the rows that nothing can be learned from (a text of only white space, an empty label)
// and returns how many they were.
int64_t DropUnusable(Dataset* dataset);
// For the end of a message about too few rows: how many were dropped; empty when none was.
std::string DroppedNote(const Dataset& dataset);

}  // namespace headlight
