// What the commands print: data to stdout, messages to stderr.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "headlight/report/table.h"

namespace headlight::app {

// Escape codes are welcome: stdout is a terminal and NO_COLOR is not set.
bool AnsiOnStdout();

// Columns of the terminal that stdout is, or 80.
int TerminalColumns();

// An aligned table, with bold headings on terminals.
void PrintTable(const Table& table);

// Writes bytes to stdout as they are.
void PrintBytes(const std::string& bytes);

// Returns when all that was printed has been taken; kResource when some of it was lost.
void FlushStdout();

// A line on stderr; nothing can be said where that fails.
template <typename... Args>
void Say(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs((fmt::format(format, std::forward<Args>(args)...) + "\n").c_str(), stderr);
}

// What is printed of an error that may quote a file: its lines as Printable shows them, and the
// middle left out where it is over-long.
std::string PrintableMessage(std::string_view message);

}  // namespace headlight::app
