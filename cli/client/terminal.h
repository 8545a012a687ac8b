// What standard output is, and text that is safe to show on it.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hpo::cli {

struct Terminal {
  bool interactive = false;  // a line may be redrawn
  int columns = 0;           // 0: unlimited (a file or a pipe)
  bool colors = false;       // ANSI colours may be used
};

// `COLUMNS` beats what the terminal says. There are no colours where NO_COLOR is set
// (no-color.org), or where TERM is "dumb".
Terminal DetectTerminal(int descriptor);

// `text` made safe to show: control characters and broken UTF-8 become '?', so that a name from
// elsewhere can never steer the terminal.
std::string Printable(absl::string_view text);

// `text` cut to at most `columns`, the last one an ellipsis where something was cut. Never inside a
// character. columns >= 1.
std::string FitTo(absl::string_view text, int columns);

}  // namespace hpo::cli
