// Single text files to rows.
#include <algorithm>
#include <optional>

#include "headlight/base/error.h"
#include "headlight/io/byte_order_mark.h"
#include "headlight/io/csv.h"
#include "headlight/io/jsonl.h"
#include "headlight/text/columns.h"
#include "headlight/text/readers.h"
#include "headlight/text/unicode.h"

namespace headlight {
namespace {

std::string Origin(const std::string& name, int64_t line) {
  return fmt::format("{}:{}", name, line);
}

// A label is shown, sorted and saved as JSON, so unlike a text it must be UTF-8.
void AddExample(std::string_view text, std::string_view label, std::string origin,
                Dataset* dataset) {
  label = Trim(label);
  if (!IsValidUtf8(label)) {
    throw Error(ErrorKind::kInput, "data: {}: the label '{}' is not UTF-8", origin,
                RepairUtf8(label));
  }
  dataset->examples.push_back({std::string(text), std::string(label), std::move(origin)});
}

// Goes through the lines that are not empty, without their ends and the byte order mark.
class LineReader {
 public:
  explicit LineReader(std::string_view bytes) : bytes_(WithoutByteOrderMark(bytes)) {}
  bool Next(std::string_view* line) {
    while (position_ < bytes_.size()) {
      const size_t end = std::min(bytes_.find('\n', position_), bytes_.size());
      *line = bytes_.substr(position_, end - position_);
      if (line->ends_with('\r')) line->remove_suffix(1);
      position_ = end + 1;
      ++number_;
      if (!line->empty()) return true;
    }
    return false;
  }
  int64_t number() const { return number_; }

 private:
  std::string_view bytes_;
  size_t position_ = 0;
  int64_t number_ = 0;
};

struct TableScan {
  CsvRecord first;
  std::vector<ColumnFacts> facts;
};

// The first pass over a table: all records must have as many fields as the first.
TableScan ScanTable(std::string_view bytes, const std::string& name, const CsvOptions& options) {
  CsvReader reader(bytes, name, options);
  CsvRecord record;
  TableScan scan;
  if (!reader.Next(&record)) {
    throw Error(ErrorKind::kInput, "data: {} is empty", name);
  }
  scan.first = record;
  scan.facts.resize(record.fields.size());
  while (reader.Next(&record)) {
    if (record.fields.size() != scan.facts.size()) {
      throw Error(ErrorKind::kInput, "data: {}:{}: {} fields, where the first row has {}{}", name,
                  record.line, record.fields.size(), scan.facts.size(),
                  options.delimiter == ',' ? " (a text with a comma needs quotes)" : "");
    }
    for (size_t i = 0; i < scan.facts.size(); ++i) scan.facts[i].Add(record.fields[i]);
  }
  return scan;
}

Dataset ParseTable(std::string_view bytes, const std::string& name, CsvOptions csv,
                   const ReadOptions& options) {
  TableScan scan;
  if (csv.delimiter == '\t') {
    // Tab-separated files come with RFC quotes and with quotes that stand for themselves. If the
    // strict reading fits the whole file it is meant, else quotes are literal.
    try {
      scan = ScanTable(bytes, name, csv);
    } catch (const Error&) {
      csv.quotes = false;
      scan = ScanTable(bytes, name, csv);
    }
  } else {
    scan = ScanTable(bytes, name, csv);
  }
  const ColumnChoice columns = ChooseColumns(scan.first, scan.facts, options, name);
  Dataset dataset;
  CsvReader reader(bytes, name, csv);
  CsvRecord record;
  bool skip = columns.has_header;
  while (reader.Next(&record)) {
    if (skip) {
      skip = false;
      continue;
    }
    AddExample(record.fields[columns.text], record.fields[columns.label], Origin(name, record.line),
               &dataset);
  }
  return dataset;
}

// The field that `asked` names, or the usual one of the first record.
std::string ChooseField(const JsonlRecord& record, const std::string& asked,
                        int (*find)(const std::vector<std::string>&), const char* what,
                        const std::string& name) {
  if (!asked.empty()) return asked;
  std::vector<std::string> names;
  for (const auto& [field, value] : record.fields) names.push_back(field);
  const int at = find(names);
  if (at < 0) {
    throw Error(ErrorKind::kInput,
                "data: {}:{}: cannot tell the {} field; name it (the fields are '{}')", name,
                record.line, what, fmt::join(names, "', '"));
  }
  return names[static_cast<size_t>(at)];
}

Dataset ParseJsonl(std::string_view bytes, const std::string& name, const ReadOptions& options) {
  JsonlReader reader(bytes, name);
  JsonlRecord record;
  Dataset dataset;
  std::string text_field;
  std::string label_field;
  while (reader.Next(&record)) {
    if (text_field.empty()) {
      text_field = ChooseField(record, options.text_field, FindTextName, "text", name);
      label_field = ChooseField(record, options.label_field, FindLabelName, "label", name);
    }
    const std::string* text = record.Find(text_field);
    const std::string* label = record.Find(label_field);
    if (text == nullptr || label == nullptr) {
      throw Error(ErrorKind::kInput,
                  "data: {}:{}: field '{}' is missing, or no string, number or boolean", name,
                  record.line, text == nullptr ? text_field : label_field);
    }
    AddExample(*text, *label, Origin(name, record.line), &dataset);
  }
  return dataset;
}

Dataset ParseLabelText(std::string_view bytes, const std::string& name) {
  LineReader reader(bytes);
  std::string_view line;
  Dataset dataset;
  while (reader.Next(&line)) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) continue;
    const size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    const size_t text = std::min(line.find_first_not_of(" \t", end), line.size());
    AddExample(line.substr(text), line.substr(begin, end - begin), Origin(name, reader.number()),
               &dataset);
  }
  return dataset;
}

Dataset ParseTextLabel(std::string_view bytes, const std::string& name) {
  LineReader reader(bytes);
  std::string_view line;
  Dataset dataset;
  while (reader.Next(&line)) {
    const size_t tab = line.rfind('\t');
    if (tab == std::string_view::npos) {
      throw Error(ErrorKind::kInput, "data: {}:{}: a line must be text<TAB>label, found no tab",
                  name, reader.number());
    }
    AddExample(line.substr(0, tab), line.substr(tab + 1), Origin(name, reader.number()), &dataset);
  }
  return dataset;
}

Dataset Parse(std::string_view bytes, const std::string& name, DataFormat format,
              const ReadOptions& options) {
  CsvOptions csv;
  switch (format) {
    case DataFormat::kCsv:
      return ParseTable(bytes, name, csv, options);
    case DataFormat::kTsv:
      csv.delimiter = '\t';
      return ParseTable(bytes, name, csv, options);
    case DataFormat::kJsonl:
      return ParseJsonl(bytes, name, options);
    case DataFormat::kLabelText:
      return ParseLabelText(bytes, name);
    case DataFormat::kTextLabel:
      return ParseTextLabel(bytes, name);
    default:
      throw Error(ErrorKind::kUsage, "data: {}: a single file cannot be read as '{}'", name,
                  DataFormatName(format));
  }
}

}  // namespace

Dataset ParseDataset(std::string_view bytes, const std::string& name, DataFormat format,
                     const ReadOptions& options) {
  if (format == DataFormat::kAuto) {
    format = DetectFormat(bytes, name);
    if (format == DataFormat::kArchive) {
      throw Error(ErrorKind::kInput,
                  "data: {} is an archive or compressed, which is not read inside of a folder or "
                  "another archive; unpack it first",
                  name);
    }
  } else {
    CheckIsText(bytes, name);
  }
  Dataset dataset = Parse(bytes, name, format, options);
  dataset.format = DataFormatName(format);
  if (dataset.examples.empty()) {
    throw Error(ErrorKind::kInput, "data: {} has no rows", name);
  }
  return dataset;
}

}  // namespace headlight
