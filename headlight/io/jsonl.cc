#include "headlight/io/jsonl.h"

#include <nlohmann/json.hpp>

#include "headlight/base/error.h"
#include "headlight/io/byte_order_mark.h"

namespace headlight {
namespace {

// Keeps the scalar fields of the outermost object. The parser behind it keeps one bit per level of
// nesting and does not recurse, so depth is harmless.
class RecordHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  RecordHandler(JsonlRecord* record, size_t line_bytes)
      : record_(record), line_bytes_(line_bytes) {}

  const std::string& error() const { return error_; }

  bool null() override { return Other(); }
  bool boolean(bool value) override { return Scalar(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return Scalar(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Scalar(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& written) override { return Scalar(written); }
  bool string(string_t& value) override { return Scalar(std::move(value)); }
  bool binary(binary_t&) override { return Other(); }
  bool start_object(size_t) override {
    ++depth_;
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) key_ = std::move(value);
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ == 0) return Other();
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    error_ = fmt::format(
        "column {}: {}", position,
        position > line_bytes_ ? "the line ends before its object does" : "this is not JSON");
    return false;
  }

 private:
  bool Scalar(std::string value) {
    if (depth_ == 1) record_->fields.emplace_back(key_, std::move(value));
    return Other();
  }
  // A value outside of an object is not a record.
  bool Other() {
    if (depth_ == 0) error_ = "a line must be one object {...}";
    return depth_ > 0;
  }

  JsonlRecord* record_;
  size_t line_bytes_;
  std::string key_;
  std::string error_;
  int64_t depth_ = 0;
};

}  // namespace

const std::string* JsonlRecord::Find(std::string_view name) const {
  for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
    if (field->first == name) return &field->second;
  }
  return nullptr;
}

JsonlReader::JsonlReader(std::string_view bytes, std::string name)
    : bytes_(WithoutByteOrderMark(bytes)), name_(std::move(name)) {}

bool JsonlReader::Next(JsonlRecord* record) {
  while (position_ < bytes_.size()) {
    const size_t end = std::min(bytes_.find('\n', position_), bytes_.size());
    const std::string_view line = bytes_.substr(position_, end - position_);
    position_ = end + 1;
    ++line_;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    record->fields.clear();
    record->line = line_;
    RecordHandler handler(record, line.size());
    if (!nlohmann::json::sax_parse(line.begin(), line.end(), &handler)) {
      throw Error(ErrorKind::kInput, "jsonl: {}:{}: {}", name_, line_, handler.error());
    }
    return true;
  }
  return false;
}

}  // namespace headlight
