#include "headlight/io/csv.h"

#include <utility>

#include "headlight/base/error.h"
#include "headlight/io/byte_order_mark.h"

namespace headlight {

CsvReader::CsvReader(std::string_view bytes, std::string name, const CsvOptions& options)
    : bytes_(WithoutByteOrderMark(bytes)), name_(std::move(name)), options_(options) {}

bool CsvReader::SkipLineEnd() {
  const std::string_view rest = bytes_.substr(position_, 2);
  if (rest.starts_with('\n')) {
    position_ += 1;
  } else if (rest == "\r\n") {
    position_ += 2;
  } else {
    return false;
  }
  ++line_;
  return true;
}

bool CsvReader::Next(CsvRecord* record) {
  while (position_ < bytes_.size() && SkipLineEnd()) {
  }
  if (position_ >= bytes_.size()) return false;
  record->line = line_;
  size_t count = 0;  // fields are overwritten in place, which keeps their memory
  for (;;) {
    if (count == record->fields.size()) record->fields.emplace_back();
    std::string* field = &record->fields[count++];
    field->clear();
    if (options_.quotes && position_ < bytes_.size() && bytes_[position_] == '"') {
      ReadQuoted(field);
    } else {
      ReadPlain(field);
    }
    if (position_ >= bytes_.size() || SkipLineEnd()) break;
    ++position_;  // the delimiter
    if (count >= static_cast<size_t>(options_.max_fields)) {
      throw Error(ErrorKind::kInput, "csv: {}:{}: a record may have at most {} fields", name_,
                  record->line, options_.max_fields);
    }
  }
  record->fields.resize(count);
  return true;
}

void CsvReader::ReadQuoted(std::string* field) {
  const int64_t opened = line_;
  ++position_;
  for (;;) {
    const size_t quote = bytes_.find('"', position_);
    if (quote == std::string_view::npos) {
      throw Error(ErrorKind::kInput, "csv: {}:{}: the quote that opens here is never closed", name_,
                  opened);
    }
    const std::string_view piece = bytes_.substr(position_, quote - position_);
    for (const char c : piece) line_ += c == '\n' ? 1 : 0;
    field->append(piece);
    position_ = quote + 1;
    if (position_ >= bytes_.size() || bytes_[position_] != '"') break;
    field->push_back('"');  // doubled
    ++position_;
  }
  const std::string_view rest = bytes_.substr(position_, 2);
  if (!rest.empty() && rest[0] != options_.delimiter && rest[0] != '\n' && rest != "\r\n") {
    throw Error(ErrorKind::kInput,
                "csv: {}:{}: a closing quote must end its field (a quote inside is written twice)",
                name_, line_);
  }
}

void CsvReader::ReadPlain(std::string* field) {
  const char stops[] = {options_.delimiter, '\n', '\0'};
  size_t end = bytes_.find_first_of(std::string_view(stops, 2), position_);
  if (end == std::string_view::npos) end = bytes_.size();
  // The CR of a CRLF is no part of the field.
  if (end < bytes_.size() && bytes_[end] == '\n' && end > position_ && bytes_[end - 1] == '\r') {
    --end;
  }
  field->assign(bytes_.substr(position_, end - position_));
  position_ = end;
}

void AppendCsvField(std::string_view field, char delimiter, std::string* out) {
  const char special[] = {delimiter, '"', '\n', '\r'};
  if (field.find_first_of(std::string_view(special, 4)) == std::string_view::npos) {
    out->append(field);
    return;
  }
  out->push_back('"');
  for (const char c : field) {
    if (c == '"') out->push_back('"');
    out->push_back(c);
  }
  out->push_back('"');
}

}  // namespace headlight
