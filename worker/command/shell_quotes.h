// Whether a place in a text of /bin/sh is within quotes, and whether a value can stand there as one
// literal word. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hpo::command {

enum class ShellQuotes { kNone, kSingle, kDouble };

// Reads a text from its beginning: quotes, backslashes, comments and $(...), which has quotes of
// its own.
// Source: POSIX.1-2017, Shell Command Language, 2.2 Quoting and 2.6.3 Command Substitution.
class ShellQuoteReader {
 public:
  void Pass(absl::string_view text);

  // Of what follows.
  ShellQuotes now() const { return inner().quotes; }
  // Where no value can be quoted for certain: "backticks", "a here-document", "$(...) with a case";
  // empty: it can.
  std::string unsafe() const;

 private:
  // The text itself, or a $(...) within it.
  struct Level {
    ShellQuotes quotes = ShellQuotes::kNone;
    int parentheses = 0;  // open ones of a subshell or a calculation
  };

  const Level& inner() const { return levels_.back(); }
  void PassCharacter(char c);
  void PassPlain(char c, char before);

  std::vector<Level> levels_ = {{}};
  std::string word_;      // the letters before this place
  char last_ = '\0';      // before this place; a backslash hides it
  bool escaped_ = false;  // by a backslash
  bool comment_ = false;
  bool between_words_ = true;
  bool backticks_ = false;
  bool here_document_ = false;
  bool case_ = false;  // within $(...): whose patterns have a parenthesis without its partner
};

}  // namespace hpo::command
