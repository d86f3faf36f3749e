#include "headlight/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headlight/base/error.h"
#include "headlight/report/escape.h"

namespace headlight {
namespace {

std::string WithThousands(int64_t value) {
  const std::string digits = fmt::format("{}", value);
  const size_t first = value < 0 ? 1 : 0;
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > first && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string Decimal(double value, int decimals) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{:.{}f}", value, decimals);
}

const std::string& KeyOf(const Column& column) {
  return column.key.empty() ? column.title : column.key;
}

// Indices of the columns that this audience sees.
std::vector<size_t> ColumnsFor(const Table& table, Audience audience) {
  std::vector<size_t> shown;
  for (size_t i = 0; i < table.columns().size(); ++i) {
    const Audience of = table.columns()[i].audience;
    if (of == Audience::kBoth || of == audience) shown.push_back(i);
  }
  return shown;
}

bool HasColumnGroups(const Table& table, const std::vector<size_t>& shown) {
  return std::any_of(shown.begin(), shown.end(),
                     [&](size_t i) { return !table.columns()[i].group.empty(); });
}

// Adjacent shown columns under one heading: [begin, end) in `shown`.
struct ColumnSpan {
  size_t begin = 0;
  size_t end = 0;
  std::string title;
};

std::vector<ColumnSpan> ColumnSpans(const Table& table, const std::vector<size_t>& shown) {
  std::vector<ColumnSpan> spans;
  for (size_t i = 0; i < shown.size(); ++i) {
    const std::string& title = table.columns()[shown[i]].group;
    if (!spans.empty() && !title.empty() && spans.back().title == title) {
      spans.back().end = i + 1;
    } else {
      spans.push_back({i, i + 1, title});
    }
  }
  return spans;
}

// The text form: lines of cells at fixed widths.
class TextTable {
 public:
  TextTable(const Table& table, const TextTableOptions& options)
      : table_(table), options_(options), shown_(ColumnsFor(table, Audience::kPeople)) {
    for (const size_t column : shown_) {
      int width = DisplayWidth(table.columns()[column].title);
      for (const Table::Row& row : table.rows()) {
        width = std::max(width, DisplayWidth(row.cells[column].text));
      }
      widths_.push_back(width);
    }
    spans_ = ColumnSpans(table, shown_);
    for (const ColumnSpan& span : spans_) {  // a long heading widens the last of its columns
      widths_[span.end - 1] += std::max(0, DisplayWidth(span.title) - SpanWidth(span));
    }
  }

  std::string Render() {
    if (!table_.title.empty()) Line(Styled(Printable(table_.title), "1"));
    if (HasColumnGroups(table_, shown_)) {
      std::string line;
      for (const ColumnSpan& span : spans_) {
        Separate(line);
        line += FitToWidth(span.title, SpanWidth(span), Align::kCentre);
      }
      Line(Styled(line, "1"));
    }
    std::string titles;
    std::string rule;
    for (size_t i = 0; i < shown_.size(); ++i) {
      const Column& column = table_.columns()[shown_[i]];
      Separate(titles);
      Separate(rule);
      titles += FitToWidth(column.title, widths_[i], column.align);
      for (int j = 0; j < widths_[i]; ++j) rule += "─";
    }
    Line(Styled(titles, "1"));
    Line(Styled(rule, "2"));
    Rows();
    return text_;
  }

 private:
  void Rows() {
    int group = 0;
    for (const Table::Row& row : table_.rows()) {
      if (row.group != group) {
        group = row.group;
        if (&row != &table_.rows().front()) Line("");
        const std::string& title = table_.groups()[static_cast<size_t>(group)];
        if (!title.empty()) Line(Styled(Printable(title), "2"));
      }
      std::string line;
      for (size_t i = 0; i < shown_.size(); ++i) {
        Separate(line);
        line +=
            FitToWidth(row.cells[shown_[i]].text, widths_[i], table_.columns()[shown_[i]].align);
      }
      Line(line);
    }
  }
  int SpanWidth(const ColumnSpan& span) const {
    int width = -2;
    for (size_t i = span.begin; i < span.end; ++i) width += widths_[i] + 2;
    return width;
  }
  static void Separate(std::string& line) {
    if (!line.empty()) line += "  ";
  }
  std::string Styled(std::string text, const char* code) const {
    while (!text.empty() && text.back() == ' ') text.pop_back();
    if (!options_.ansi || text.empty()) return text;
    return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
  }
  void Line(std::string line) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (!line.empty()) text_.append(static_cast<size_t>(options_.indent), ' ');
    text_ += line + "\n";
  }

  const Table& table_;
  TextTableOptions options_;
  std::vector<size_t> shown_;
  std::vector<int> widths_;
  std::vector<ColumnSpan> spans_;
  std::string text_;
};

std::string JsonValue(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell.value)) return JsonString(*text);
  if (const auto* number = std::get_if<int64_t>(&cell.value)) return fmt::format("{}", *number);
  if (const auto* real = std::get_if<double>(&cell.value)) return JsonNumber(*real);
  return "null";
}

std::string CsvValue(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell.value)) return CsvField(*text);
  if (const auto* number = std::get_if<int64_t>(&cell.value)) return fmt::format("{}", *number);
  if (const auto* real = std::get_if<double>(&cell.value)) return fmt::format("{}", *real);
  return "";
}

const char* HtmlClass(const Column& column) {
  switch (column.align) {
    case Align::kLeft:
      return "left";
    case Align::kRight:
      return "right";
    case Align::kCentre:
      return "centre";
  }
  return "left";
}

}  // namespace

Cell::Cell(int64_t number) : text(WithThousands(number)), value(number) {}

Cell Cell::Real(double number, int decimals) { return Text(Decimal(number, decimals), number); }

Cell Cell::Percent(double share, int decimals) {
  return Text(Decimal(share * 100, decimals) + (std::isfinite(share) ? " %" : ""), share);
}

Cell Cell::Text(std::string words, double number) {
  Cell cell;
  cell.text = std::move(words);
  cell.value = number;
  return cell;
}

void Table::AddRow(std::vector<Cell> cells) {
  if (cells.size() != columns_.size()) {
    throw Error(ErrorKind::kInternal, "table: a row must have {} cells, found {}", columns_.size(),
                cells.size());
  }
  rows_.push_back({std::move(cells), static_cast<int>(groups_.size()) - 1});
}

void Table::StartGroup(std::string group_title) { groups_.push_back(std::move(group_title)); }

std::string TableAsText(const Table& table, const TextTableOptions& options) {
  return TextTable(table, options).Render();
}

std::string TableAsMarkdown(const Table& table) {
  const std::vector<size_t> shown = ColumnsFor(table, Audience::kPeople);
  std::vector<std::vector<std::string>> lines(1);
  for (const size_t i : shown) {
    const Column& column = table.columns()[i];
    lines[0].push_back(
        MarkdownCell(column.group.empty() ? column.title : column.group + ": " + column.title));
  }
  int group = 0;
  for (const Table::Row& row : table.rows()) {
    const std::string& title = table.groups()[static_cast<size_t>(row.group)];
    if (row.group != group && !title.empty()) {
      lines.emplace_back(shown.size());
      lines.back()[0] = "**" + MarkdownCell(title) + "**";
    }
    group = row.group;
    lines.emplace_back();
    for (const size_t i : shown) lines.back().push_back(MarkdownCell(row.cells[i].text));
  }
  std::string text = table.title.empty() ? "" : "**" + MarkdownCell(table.title) + "**\n\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string rule = "|";
    text += "|";
    for (size_t j = 0; j < shown.size(); ++j) {
      const Align align = table.columns()[shown[j]].align;
      int width = 3;
      for (const auto& line : lines) width = std::max(width, DisplayWidth(line[j]));
      text += " " + FitToWidth(lines[i][j], width, align) + " |";
      const auto dashes = std::string(static_cast<size_t>(width) + 2, '-');
      rule += align == Align::kLeft ? dashes : dashes.substr(1) + ":";
      if (align == Align::kCentre) rule[rule.size() - dashes.size()] = ':';
      rule += "|";
    }
    text += "\n";
    if (i == 0) text += rule + "\n";
  }
  return text;
}

std::string TableAsHtml(const Table& table) {
  const std::vector<size_t> shown = ColumnsFor(table, Audience::kPeople);
  std::string html = "<table>\n";
  if (!table.title.empty()) html += "<caption>" + EscapeHtml(table.title) + "</caption>\n";
  html += "<thead>\n";
  if (HasColumnGroups(table, shown)) {
    html += "<tr>";
    for (const ColumnSpan& span : ColumnSpans(table, shown)) {
      html += fmt::format("<th class=\"group\" colspan=\"{}\">{}</th>", span.end - span.begin,
                          EscapeHtml(span.title));
    }
    html += "</tr>\n";
  }
  html += "<tr>";
  for (const size_t i : shown) {
    const Column& column = table.columns()[i];
    html += fmt::format("<th class=\"{}\">{}</th>", HtmlClass(column), EscapeHtml(column.title));
  }
  html += "</tr>\n</thead>\n<tbody>\n";
  int group = 0;
  for (const Table::Row& row : table.rows()) {
    if (row.group != group) {
      group = row.group;
      html +=
          fmt::format("</tbody>\n<tbody>\n<tr><th class=\"section\" colspan=\"{}\">{}</th></tr>\n",
                      shown.size(), EscapeHtml(table.groups()[static_cast<size_t>(group)]));
    }
    html += "<tr>";
    for (const size_t i : shown) {
      html += fmt::format("<td class=\"{}\">{}</td>", HtmlClass(table.columns()[i]),
                          EscapeHtml(row.cells[i].text));
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>\n";
}

std::string TableAsCsv(const Table& table) {
  const std::vector<size_t> shown = ColumnsFor(table, Audience::kMachines);
  std::string text;
  for (size_t j = 0; j < shown.size(); ++j) {
    if (j > 0) text += ',';
    text += CsvField(KeyOf(table.columns()[shown[j]]));
  }
  text += "\r\n";
  for (const Table::Row& row : table.rows()) {
    for (size_t j = 0; j < shown.size(); ++j) {
      if (j > 0) text += ',';
      text += CsvValue(row.cells[shown[j]]);
    }
    text += "\r\n";
  }
  return text;
}

std::string TableAsJson(const Table& table) {
  const std::vector<size_t> shown = ColumnsFor(table, Audience::kMachines);
  std::string text = "[";
  for (size_t i = 0; i < table.rows().size(); ++i) {
    text += i > 0 ? ",\n {" : "\n {";
    for (size_t j = 0; j < shown.size(); ++j) {
      text +=
          fmt::format("{}{}: {}", j > 0 ? ", " : "", JsonString(KeyOf(table.columns()[shown[j]])),
                      JsonValue(table.rows()[i].cells[shown[j]]));
    }
    text += "}";
  }
  return text + (table.rows().empty() ? "]" : "\n]");
}

}  // namespace headlight
