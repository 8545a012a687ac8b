// What a program has printed, made safe and readable for a terminal, a message or a file. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hpo {

enum class PrintedColors { kLeftOut, kKept };

// A line without its newline, as a terminal would show it at last: of what carriage returns
// overwrite, as progress bars do, the last part that is not blank; a backspace takes a character
// back. Escape sequences are left out, with what they carry (titles, links, cursor movements), and
// so are other control characters but the tab. Bytes that are not UTF-8, C1 controls and those that
// turn the direction of writing become '?'. kKept: colours, bold, italics and underlines stay, and
// end with the line.
// Source: ECMA-48, 5.4 (CSI), 5.6 (strings) and 8.3.117 (SGR).
std::string ShownLine(absl::string_view line, PrintedColors colors = PrintedColors::kLeftOut);

// The same of several lines.
std::string ShownLines(absl::string_view text, PrintedColors colors = PrintedColors::kLeftOut);

}  // namespace hpo
