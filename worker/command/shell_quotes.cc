#include "worker/command/shell_quotes.h"

#include "absl/strings/ascii.h"

namespace hpo {

void ShellQuoteReader::Pass(absl::string_view text) {
  for (const char c : text) {
    if (comment_) {
      comment_ = c != '\n';
      continue;
    }
    const bool plain = quotes_ == ShellQuotes::kNone;
    const bool begins_word = plain && between_words_;
    between_words_ = plain && !escaped_ &&
                     (absl::ascii_isspace(static_cast<unsigned char>(c)) || c == ';' || c == '&' ||
                      c == '|' || c == '(');
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = quotes_ != ShellQuotes::kSingle;
    } else if (c == '\'' && quotes_ != ShellQuotes::kDouble) {
      quotes_ = plain ? ShellQuotes::kSingle : ShellQuotes::kNone;
    } else if (c == '"' && quotes_ != ShellQuotes::kSingle) {
      quotes_ = plain ? ShellQuotes::kDouble : ShellQuotes::kNone;
    } else if (c == '#' && begins_word) {
      comment_ = true;
    }
  }
}

}  // namespace hpo
