// A table, once, for every place where it is shown: terminal, Markdown, HTML, CSV, JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "headlight/report/width.h"

namespace headlight {

// Who sees a column: people (terminal, Markdown, HTML) want "93.1 ± 0.4", machines (CSV, JSON) want
// the numbers apart.
enum class Audience { kBoth, kPeople, kMachines };

struct Column {
  std::string title;     // for people, with its unit: "s/epoch"
  std::string key = {};  // for machines: "seconds_per_epoch"; empty: the title
  Align align = Align::kRight;
  Audience audience = Audience::kBoth;
  std::string group = {};  // adjacent columns of one group share a heading over their titles
};

// What people read and what machines read. A text that is not given is made from the value.
struct Cell {
  Cell() = default;  // empty for people, null in JSON
  Cell(std::string words) : text(words), value(std::move(words)) {}
  Cell(std::string_view words) : Cell(std::string(words)) {}
  Cell(const char* words) : Cell(std::string(words)) {}
  Cell(int64_t number);  // with separators of thousands for people: 1,234,567
  Cell(int number) : Cell(int64_t{number}) {}
  // `decimals` after the point for people; machines get all digits. Not finite: "nan", "inf" for
  // people and in CSV, null in JSON.
  static Cell Real(double number, int decimals);
  static Cell Percent(double share, int decimals);  // 0.931 -> "93.1 %"; machines get the share
  static Cell Text(std::string words, double number);

  std::string text;
  std::variant<std::monostate, std::string, int64_t, double> value;
};

class Table {
 public:
  Table() = default;
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  std::string title;

  // Throws kInternal when there are not as many cells as columns.
  void AddRow(std::vector<Cell> cells);
  // The rows from here on belong together: a blank line, and the title when there is one.
  void StartGroup(std::string group_title);

  struct Row {
    std::vector<Cell> cells;
    int group = 0;  // index into groups()
  };
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<std::string>& groups() const { return groups_; }

 private:
  std::vector<Column> columns_;
  std::vector<Row> rows_;
  std::vector<std::string> groups_ = {""};
};

struct TextTableOptions {
  bool ansi = false;  // bold headings and dim group titles by escape codes
  int indent = 0;
};

// Aligned columns without boxes, two spaces apart.
std::string TableAsText(const Table& table, const TextTableOptions& options = {});
std::string TableAsMarkdown(const Table& table);  // GitHub's tables
std::string TableAsHtml(const Table& table);      // one <table>, everything escaped
std::string TableAsCsv(const Table& table);       // RFC 4180, a line of keys first
// An array of objects, keys in the order of the columns: [{"heads": 1, ...}, ...].
std::string TableAsJson(const Table& table);

}  // namespace headlight
