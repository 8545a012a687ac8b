// Whether a place in a text of /bin/sh is within quotes. Pure.
#pragma once

#include "absl/strings/string_view.h"

namespace hpo {

enum class ShellQuotes { kNone, kSingle, kDouble };

// Reads a text from its beginning: quotes, backslashes and comments; a here-document, and quotes
// within $(...) within quotes, are taken for ordinary text.
class ShellQuoteReader {
 public:
  void Pass(absl::string_view text);

  // Of what follows.
  ShellQuotes now() const { return quotes_; }

 private:
  ShellQuotes quotes_ = ShellQuotes::kNone;
  bool escaped_ = false;  // by a backslash
  bool comment_ = false;
  bool between_words_ = true;
};

}  // namespace hpo
