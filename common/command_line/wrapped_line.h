// Lines of text that fit into a terminal. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hpo {

// The width of a text that no terminal shows, such as help that goes into a file.
constexpr int kTextColumns = 80;

// Columns that `text` (UTF-8) takes: 0 for combining marks, for escape sequences that begin with
// ESC [ and for carriage returns, 2 for East Asian wide characters.
int DisplayWidth(absl::string_view text);

// `line` (without its newline) as lines of at most `columns` columns, joined by newlines. It is
// broken at blanks. What follows the first line is indented as the text after a label (two blanks
// or more) is, else somewhat further than the line itself. What is meant to be copied stays whole,
// even if it is too long: one of our commands, up to a semicolon, a comma, a parenthesis or two
// blanks, and every word; so does a comment of a command, from "# " on, and a line that ends in a
// backslash, as the next one belongs to it. columns >= 1.
std::string WrappedLine(absl::string_view line, int columns);

// WrappedLine of each line of `text`.
std::string WrappedLines(absl::string_view text, int columns);

}  // namespace hpo
