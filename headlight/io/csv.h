// CSV and TSV (RFC 4180): quotes, doubled quotes, fields over several lines, LF or CRLF, a byte
// order mark. A quote inside an unquoted field stands for itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headlight {

struct CsvOptions {
  char delimiter = ',';
  bool quotes = true;  // false: a quote is a character like another
  int64_t max_fields = 10000;
};

struct CsvRecord {
  std::vector<std::string> fields;
  int64_t line = 0;  // where it begins, from 1
};

// Reads records from bytes in memory, which must outlive it.
class CsvReader {
 public:
  // `name` is the file's name for messages.
  CsvReader(std::string_view bytes, std::string name, const CsvOptions& options);

  // False at the end. Empty lines are skipped. Throws kInput, naming file and line, for a quoted
  // field that does not end or goes on after its closing quote, and for too many fields.
  bool Next(CsvRecord* record);

 private:
  void ReadQuoted(std::string* field);
  void ReadPlain(std::string* field);
  // Skips "\n" or "\r\n"; false when neither is next.
  bool SkipLineEnd();

  std::string_view bytes_;
  std::string name_;
  CsvOptions options_;
  size_t position_ = 0;
  int64_t line_ = 1;
};

// Appends a field, quoted when it needs to be.
void AppendCsvField(std::string_view field, char delimiter, std::string* out);

}  // namespace headlight
