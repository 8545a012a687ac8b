#include "worker/command/shell_quotes.h"

#include "absl/strings/ascii.h"

namespace hpo::command {

void ShellQuoteReader::PassPlain(char c, char before) {
  Level& level = levels_.back();
  if (c == '<' && before == '<') here_document_ = true;
  if (levels_.size() == 1) return;
  if (c == '(') ++level.parentheses;
  if (c != ')') return;
  if (level.parentheses > 0) {
    --level.parentheses;
  } else {
    levels_.pop_back();
  }
}

void ShellQuoteReader::PassCharacter(char c) {
  Level& level = levels_.back();
  const bool plain = level.quotes == ShellQuotes::kNone;
  const bool begins_word = plain && between_words_;
  const bool is_letter = absl::ascii_isalpha(static_cast<unsigned char>(c));
  if (!is_letter) {
    case_ |= word_ == "case" && levels_.size() > 1;
    word_.clear();
  } else if (begins_word || !word_.empty()) {
    word_ += c;
  }
  between_words_ = plain && !escaped_ &&
                   (absl::ascii_isspace(static_cast<unsigned char>(c)) || c == ';' || c == '&' ||
                    c == '|' || c == '(');
  const char before = last_;
  last_ = escaped_ ? '\0' : c;
  if (escaped_) {
    escaped_ = false;
  } else if (c == '\\') {
    escaped_ = level.quotes != ShellQuotes::kSingle;
  } else if (c == '\'' && level.quotes != ShellQuotes::kDouble) {
    level.quotes = plain ? ShellQuotes::kSingle : ShellQuotes::kNone;
  } else if (level.quotes == ShellQuotes::kSingle) {
    return;
  } else if (c == '"') {
    level.quotes = plain ? ShellQuotes::kDouble : ShellQuotes::kNone;
  } else if (c == '`') {
    backticks_ = true;
  } else if (c == '(' && before == '$') {
    levels_.push_back({});
    between_words_ = true;
  } else if (c == '#' && begins_word) {
    comment_ = true;
  } else if (plain) {
    PassPlain(c, before);
  }
}

void ShellQuoteReader::Pass(absl::string_view text) {
  for (const char c : text) {
    if (comment_) {
      comment_ = c != '\n';
    } else {
      PassCharacter(c);
    }
  }
}

std::string ShellQuoteReader::unsafe() const {
  if (backticks_) return "backticks";
  if (here_document_) return "a here-document";
  return case_ ? "$(...) with a case" : "";
}

}  // namespace hpo::command
