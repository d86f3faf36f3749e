// Any bytes as CSV and TSV: no crash, and what was read, written and read again is the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "headlight/base/error.h"
#include "headlight/io/csv.h"

namespace {

using headlight::CsvOptions;

std::vector<std::vector<std::string>> ReadAll(std::string_view bytes, const CsvOptions& options) {
  headlight::CsvReader reader(bytes, "fuzz", options);
  headlight::CsvRecord record;
  std::vector<std::vector<std::string>> rows;
  while (reader.Next(&record)) rows.push_back(record.fields);
  return rows;
}

void TryRoundTrip(std::string_view bytes, const CsvOptions& options) {
  std::vector<std::vector<std::string>> rows;
  try {
    rows = ReadAll(bytes, options);
  } catch (const headlight::Error&) {
    return;
  }
  if (!options.quotes) return;
  std::string written;
  for (const std::vector<std::string>& row : rows) {
    // A record of one empty field is an empty line unless it is quoted.
    if (row.size() == 1 && row[0].empty()) written += "\"\"";
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) written.push_back(options.delimiter);
      headlight::AppendCsvField(row[i], options.delimiter, &written);
    }
    written.push_back('\n');
  }
  // A mark at the very beginning would be taken for a byte order mark.
  if (!written.starts_with("\xEF\xBB\xBF") && ReadAll(written, options) != rows) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(data, data + size);
  for (const char delimiter : {',', '\t'}) {
    for (const bool quotes : {true, false}) {
      CsvOptions options;
      options.delimiter = delimiter;
      options.quotes = quotes;
      options.max_fields = 100;
      TryRoundTrip(bytes, options);
    }
  }
  return 0;
}
