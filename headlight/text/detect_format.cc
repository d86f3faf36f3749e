// What a file is, by its first rows.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <unordered_set>

#include "headlight/base/error.h"
#include "headlight/io/archive.h"
#include "headlight/io/byte_order_mark.h"
#include "headlight/io/csv.h"
#include "headlight/io/file.h"
#include "headlight/io/jsonl.h"
#include "headlight/text/columns.h"
#include "headlight/text/readers.h"
#include "headlight/text/unicode.h"

namespace headlight {
namespace {

constexpr int64_t kSampleRows = 1000;
constexpr size_t kSampleBytes = size_t{4} << 20;

bool EndsWith(const std::string& name, std::string_view ending) {
  return ToLower(name).ends_with(ending);
}

// "[{": a list of objects, which no reader takes.
bool StartsAsJsonList(std::string_view bytes) {
  const std::string_view white = " \t\r\n";
  const size_t first = bytes.find_first_not_of(white);
  if (first == std::string_view::npos || bytes[first] != '[') return false;
  const size_t second = bytes.find_first_not_of(white, first + 1);
  return second != std::string_view::npos && bytes[second] == '{';
}

bool StartsAsJsonl(std::string_view bytes, const std::string& name) {
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || bytes[first] != '{') return false;
  if (EndsWith(name, ".jsonl") || EndsWith(name, ".ndjson")) return true;
  try {
    JsonlReader reader(bytes, name);
    JsonlRecord record;
    return reader.Next(&record);
  } catch (const Error&) {
    return false;
  }
}

// Number of fields that all of the first rows have, 0 when they differ. Rows that the end of the
// sample cut off do not count.
size_t CommonFields(std::string_view sample, bool cut, CsvOptions options) {
  CsvReader reader(sample, "", options);
  size_t fields = 0;
  CsvRecord record;
  CsvRecord next;
  try {
    bool more = reader.Next(&record);
    for (int64_t row = 0; more && row < kSampleRows; ++row) {
      more = reader.Next(&next);
      if (!more && cut && row > 0) break;
      if (fields == 0) fields = record.fields.size();
      if (record.fields.size() != fields) return 0;
      std::swap(record, next);
    }
  } catch (const Error&) {
    if (!cut || fields == 0) return 0;
  }
  return fields;
}

// "text<TAB>label" rather than a table: two columns, no header, the second one looks like labels.
bool IsTextLabel(std::string_view sample) {
  CsvOptions options;
  options.delimiter = '\t';
  options.quotes = false;
  CsvReader reader(sample, "", options);
  CsvRecord record;
  ColumnFacts left;
  ColumnFacts right;
  std::vector<std::string> first;
  for (int64_t row = 0; row < kSampleRows && reader.Next(&record); ++row) {
    if (record.fields.size() != 2) return false;
    if (row == 0) first = record.fields;
    left.Add(record.fields[0]);
    right.Add(record.fields[1]);
  }
  if (FindTextName(first) >= 0 || FindLabelName(first) >= 0) return false;
  return right.is_label_like() && std::pair(right.distinct(), right.mean_bytes()) <=
                                      std::pair(left.distinct(), left.mean_bytes());
}

bool HasUsualHeader(std::string_view sample) {
  CsvReader reader(sample, "", {});
  CsvRecord first;
  return reader.Next(&first) &&
         (FindTextName(first.fields) >= 0 || FindLabelName(first.fields) >= 0);
}

// Few first words, and text behind nearly all of them.
bool IsLabelText(std::string_view sample) {
  std::unordered_set<std::string_view> labels;
  int64_t lines = 0;
  int64_t with_text = 0;
  for (size_t begin = 0; begin < sample.size() && lines < kSampleRows;) {
    const size_t end = std::min(sample.find('\n', begin), sample.size());
    const std::string_view line = Trim(sample.substr(begin, end - begin));
    begin = end + 1;
    if (line.empty()) continue;
    const size_t space = line.find_first_of(" \t");
    ++lines;
    with_text += space != std::string_view::npos ? 1 : 0;
    const std::string_view label = line.substr(0, space);
    if (label.size() > 64) return false;
    labels.insert(label);
  }
  return lines > 0 && with_text * 10 >= lines * 9 &&
         static_cast<int64_t>(labels.size()) <= std::max<int64_t>(2, lines / 3);
}

}  // namespace

void CheckIsText(std::string_view bytes, const std::string& name) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("\xFF\xFE\0\0"sv) || bytes.starts_with("\0\0\xFE\xFF"sv)) {
    throw Error(ErrorKind::kInput, "data: {} is UTF-32; convert it to UTF-8 first", name);
  }
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) {
    throw Error(ErrorKind::kInput, "data: {} is UTF-16; convert it to UTF-8 first", name);
  }
  if (bytes.substr(0, 4096).find('\0') != std::string_view::npos) {
    throw Error(ErrorKind::kInput, "data: {} is not text (it holds zero bytes)", name);
  }
  const size_t returned = bytes.find('\r');
  if (bytes.find('\n') == std::string_view::npos && returned != std::string_view::npos &&
      returned + 1 < bytes.size()) {
    throw Error(ErrorKind::kInput,
                "data: {}: its lines end in CR alone (as on old Macs); convert them to LF first",
                name);
  }
}

DataFormat DetectFormat(std::string_view bytes, const std::string& name) {
  if (LooksLikeArchive(bytes)) return DataFormat::kArchive;
  CheckIsText(bytes, name);
  const bool cut = bytes.size() > kSampleBytes;
  std::string_view sample = WithoutByteOrderMark(bytes.substr(0, kSampleBytes));
  if (cut) sample = sample.substr(0, sample.rfind('\n') + 1);  // npos + 1: nothing left
  if (sample.find_first_not_of(" \t\r\n") == std::string_view::npos && !cut) {
    throw Error(ErrorKind::kInput, "data: {} is empty", name);
  }
  if (StartsAsJsonList(sample)) {
    throw Error(ErrorKind::kInput, "data: {} is one JSON list; what is read is one object a line",
                name);
  }
  if (StartsAsJsonl(bytes, name)) return DataFormat::kJsonl;
  CsvOptions options;
  options.delimiter = '\t';
  size_t tabs = CommonFields(sample, cut, options);
  if (tabs < 2) {
    options.quotes = false;
    tabs = CommonFields(sample, cut, options);
  }
  if (tabs == 2 && IsTextLabel(sample)) return DataFormat::kTextLabel;
  if (tabs >= 2) return DataFormat::kTsv;
  const bool named_csv = EndsWith(name, ".csv");
  const size_t commas = CommonFields(sample, cut, CsvOptions());
  if (commas >= 2 && (named_csv || HasUsualHeader(sample) || !IsLabelText(sample))) {
    return DataFormat::kCsv;
  }
  // A broken file of a known name: its reader says what is wrong and where.
  if (named_csv) return DataFormat::kCsv;
  if (EndsWith(name, ".tsv")) return DataFormat::kTsv;
  if (EndsWith(name, ".jsonl") || EndsWith(name, ".ndjson")) return DataFormat::kJsonl;
  if (IsLabelText(sample)) return DataFormat::kLabelText;
  throw Error(ErrorKind::kInput,
              "data: cannot tell the format of {}; name it: csv, tsv, jsonl, label-text or "
              "text-label",
              name);
}

DataFormat DetectFormat(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) return DataFormat::kFolders;
  // Only the beginning is looked at; ReadFile reports what cannot be read at all.
  std::ifstream file(path, std::ios::binary);
  if (!file) return DetectFormat(ReadFile(path), path);
  std::string head(kSampleBytes + 1, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  return DetectFormat(head, path);
}

}  // namespace headlight
