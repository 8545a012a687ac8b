// The line of an output that says why a program failed.
#pragma once

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace hpo {

// The last line of `text` that is not blank: of a traceback the one that names the error.
inline std::string LastLine(absl::string_view text) {
  text = absl::StripTrailingAsciiWhitespace(text);
  return std::string(text.substr(text.rfind('\n') + 1));
}

}  // namespace hpo
