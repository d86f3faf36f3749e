#include "headlight/text/columns.h"

#include <algorithm>
#include <optional>
#include <span>

#include "headlight/base/error.h"
#include "headlight/text/unicode.h"

namespace headlight {
namespace {

// The surest first.
constexpr std::string_view kTextNames[] = {"text",  "review",   "sentence", "content",   "comment",
                                           "body",  "message",  "document", "tweet",     "query",
                                           "title", "question", "headline", "utterance", "input",
                                           "文本",  "评论",     "内容",     "句子",      "标题"};
constexpr std::string_view kLabelNames[] = {
    "label",    "labels", "category", "class", "sentiment", "intent", "topic", "target", "tag",
    "polarity", "stars",  "rating",   "score", "y",         "标签",   "类别",  "分类"};

int FindName(const std::vector<std::string>& names, std::span<const std::string_view> usual) {
  for (const std::string_view wanted : usual) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (ToLower(Trim(names[i])) == wanted) return static_cast<int>(i);
    }
  }
  return -1;
}

bool IsNumber(std::string_view cell) {
  return !cell.empty() && cell.find_first_not_of("+-.0123456789eE") == std::string_view::npos &&
         cell.find_first_of("0123456789") != std::string_view::npos;
}

// In any case, without spaces around it.
std::vector<size_t> ColumnsLike(const std::vector<std::string>& names, std::string_view wanted) {
  std::vector<size_t> columns;
  const std::string lower = ToLower(Trim(wanted));
  for (size_t i = 0; i < names.size(); ++i) {
    if (ToLower(Trim(names[i])) == lower) columns.push_back(i);
  }
  return columns;
}

// Those of exactly this name, else those like it.
std::vector<size_t> ColumnsNamed(const std::vector<std::string>& names, std::string_view wanted) {
  std::vector<size_t> columns;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == wanted) columns.push_back(i);
  }
  return columns.empty() ? ColumnsLike(names, wanted) : columns;
}

size_t OnlyColumn(const std::vector<size_t>& columns, const CsvRecord& header, const char* what,
                  const std::string& name) {
  if (columns.size() > 1) {
    throw Error(ErrorKind::kInput,
                "data: {}:{}: the name of the {} column must occur once, found '{}' in columns "
                "{} and {}; rename one of them, or give the column's number",
                name, header.line, what, header.fields[columns[0]], columns[0] + 1, columns[1] + 1);
  }
  return columns[0];
}

// A number from 1; 0 when `wanted` is none.
size_t ColumnNumber(std::string_view wanted) {
  if (wanted.empty() || wanted.size() > 6) return 0;
  size_t number = 0;
  for (const char c : wanted) {
    if (c < '0' || c > '9') return 0;
    number = number * 10 + static_cast<size_t>(c - '0');
  }
  return number;
}

size_t AskedColumn(const CsvRecord& first, const std::string& wanted, bool has_header,
                   const char* what, const std::string& name) {
  if (has_header) {
    const std::vector<size_t> columns = ColumnsNamed(first.fields, wanted);
    if (!columns.empty()) return OnlyColumn(columns, first, what, name);
  }
  const size_t number = ColumnNumber(wanted);
  if (number >= 1 && number <= first.fields.size()) return number - 1;
  std::string there;
  if (has_header) {
    there = fmt::format("the columns are '{}'", fmt::join(first.fields, "', '"));
  } else {
    there =
        fmt::format("there is no header, so columns go by number, 1 to {}", first.fields.size());
  }
  throw Error(ErrorKind::kInput, "data: {}: there is no {} column '{}'; {}", name, what, wanted,
              there);
}

// The column of a usual name unless there is none or it is `other`.
std::optional<size_t> UsualColumn(const CsvRecord& header, int usual, std::optional<size_t> other,
                                  const char* what, const std::string& name) {
  if (usual < 0 || other == static_cast<size_t>(usual)) return std::nullopt;
  const std::string& found = header.fields[static_cast<size_t>(usual)];
  return OnlyColumn(ColumnsLike(header.fields, found), header, what, name);
}

bool DecideHeader(const std::vector<std::string>& first, const std::vector<ColumnFacts>& facts,
                  const ReadOptions& options) {
  if (options.header != HeaderMode::kAuto) return options.header == HeaderMode::kYes;
  const auto names_a_column = [&](const std::string& wanted) {
    return !wanted.empty() && ColumnNumber(wanted) == 0 && !ColumnsNamed(first, wanted).empty();
  };
  if (names_a_column(options.text_column) || names_a_column(options.label_column)) return true;
  if (FindTextName(first) >= 0 || FindLabelName(first) >= 0) return true;
  // A column of numbers under a word.
  for (size_t i = 0; i < first.size(); ++i) {
    if (facts[i].all_numbers() && !first[i].empty() && !IsNumber(first[i])) return true;
  }
  return false;
}

// The column that looks most like labels: fewest values, but at least two where there is such a
// one; then the shorter cells; then the later column.
std::optional<size_t> GuessLabel(const std::vector<ColumnFacts>& facts,
                                 std::optional<size_t> text) {
  std::optional<size_t> best;
  const auto rank = [&facts](size_t column) {
    const int64_t distinct = facts[column].distinct();
    return std::pair(distinct < 2 ? ColumnFacts::kMany : distinct, facts[column].mean_bytes());
  };
  for (size_t i = 0; i < facts.size(); ++i) {
    if (text == i || !facts[i].is_label_like()) continue;
    if (!best || rank(i) <= rank(*best)) best = i;
  }
  return best;
}

std::optional<size_t> GuessText(const std::vector<ColumnFacts>& facts,
                                std::optional<size_t> label) {
  std::optional<size_t> best;
  for (size_t i = 0; i < facts.size(); ++i) {
    if (label == i) continue;
    if (!best || facts[i].mean_bytes() > facts[*best].mean_bytes()) best = i;
  }
  return best;
}

}  // namespace

void ColumnFacts::Add(std::string_view cell) {
  ++cells_;
  bytes_ += static_cast<int64_t>(cell.size());
  numbers_ += IsNumber(cell) ? 1 : 0;
  if (too_many_) return;
  if (cell.size() > kLongestLabel) {
    too_many_ = true;
  } else if (!cell.empty()) {
    values_.emplace(cell);
    too_many_ = static_cast<int64_t>(values_.size()) >= kMany;
  }
  if (too_many_) values_.clear();
}

int FindTextName(const std::vector<std::string>& names) { return FindName(names, kTextNames); }
int FindLabelName(const std::vector<std::string>& names) { return FindName(names, kLabelNames); }

ColumnChoice ChooseColumns(const CsvRecord& first, const std::vector<ColumnFacts>& facts,
                           const ReadOptions& options, const std::string& name) {
  if (first.fields.size() < 2) {
    throw Error(ErrorKind::kInput,
                "data: {}: a table needs a text and a label column, found one column", name);
  }
  ColumnChoice choice;
  choice.has_header = DecideHeader(first.fields, facts, options);
  std::optional<size_t> text;
  std::optional<size_t> label;
  if (!options.text_column.empty()) {
    text = AskedColumn(first, options.text_column, choice.has_header, "text", name);
  }
  if (!options.label_column.empty()) {
    label = AskedColumn(first, options.label_column, choice.has_header, "label", name);
  }
  if (choice.has_header) {
    if (!text) text = UsualColumn(first, FindTextName(first.fields), label, "text", name);
    if (!label) label = UsualColumn(first, FindLabelName(first.fields), text, "label", name);
  }
  if (!label) label = GuessLabel(facts, text);
  if (!text) text = GuessText(facts, label);
  // Of two columns, what is not the text is the label.
  if (!label && first.fields.size() == 2 && text) label = 1 - *text;
  if (!label || !text || *label == *text) {
    throw Error(ErrorKind::kInput,
                "data: {}: cannot tell the text and the label column; name them (first row: '{}')",
                name, fmt::join(first.fields, "', '"));
  }
  choice.text = *text;
  choice.label = *label;
  return choice;
}

}  // namespace headlight
