// Text inside JSON, HTML, Markdown and CSV. Broken UTF-8 comes out as U+FFFD everywhere.
#pragma once

#include <string>
#include <string_view>

namespace headlight {

// With its quotes. Control characters escaped; valid JSON whatever the bytes are.
std::string JsonString(std::string_view text);

// A number, or null when it is not finite. All digits.
std::string JsonNumber(double value);

// JSON as it may lie inside <script>: nothing in it can end the element or open a comment.
std::string JsonForScript(std::string_view json);

// A field of RFC 4180: quoted when it must be.
std::string CsvField(std::string_view text);

// A cell of a GitHub table: one line, no markup.
std::string MarkdownCell(std::string_view text);

// Text as HTML text or a quoted attribute: & < > " ' escaped.
std::string EscapeHtml(std::string_view text);

// RFC 4648.
std::string Base64(std::string_view bytes);

}  // namespace headlight
