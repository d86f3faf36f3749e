// How wide text is on a terminal, in columns: 2 for East Asian wide and fullwidth characters and
// emoji, 0 for combining marks and format characters (Unicode Standard Annex #11, by ICU's data).
#pragma once

#include <string>
#include <string_view>

namespace headlight {

// What is safe to print: control characters as their visible pictures (U+2400 block: ␊ for a line
// break), so that text from a file cannot move the cursor; broken UTF-8 as U+FFFD.
std::string Printable(std::string_view text);

// Columns that Printable(text) takes.
int DisplayWidth(std::string_view text);

// The longest beginning, cut between grapheme clusters, of at most `width` columns; with an
// ellipsis (one column) when something was cut. Printable.
std::string TruncateToWidth(std::string_view text, int width);

enum class Align { kLeft, kRight, kCentre };

// Exactly `width` columns: truncated or filled with spaces. Printable.
std::string FitToWidth(std::string_view text, int width, Align align);

}  // namespace headlight
