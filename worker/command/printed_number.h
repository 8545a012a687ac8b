// Numbers as programs print them. Pure.
//
// A number has a sign, digits with a decimal point, and an exponent: 3, -0.5, .5, 1.e-05, +1.8E+3.
// Commas or underscores between groups of three digits separate thousands: 1,234.5 and 1_234.5.
// inf, infinity and nan are numbers in any case, with a sign or without. What follows a number
// directly (0.5s, 90%) is a unit and is not read.
// "0,35", "1.5.2" and "0x1f" look like one number and are none that is read.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace hpo::command {

// Of ASCII. A letter of a word is an underscore too, its other characters are digits.
bool IsDigit(char c);
bool IsSpace(char c);
bool IsLetterOfWord(char c);
bool IsWordChar(char c);

struct PrintedNumber {
  absl::string_view text;  // a part of the line
  // nullopt: it looks like one number, and is none that is read.
  std::optional<double> value;
  // It follows a letter or an underscore: the 5 of "top5", the 32 of "float32".
  bool in_word = false;
};

// The numbers of a line, in their order. Views into `line`. O(length).
std::vector<PrintedNumber> FindPrintedNumbers(absl::string_view line);

// The value of a text that is one number and nothing else, without separators of thousands; nullopt
// for any other text.
std::optional<double> ParsePlainNumber(absl::string_view text);

}  // namespace hpo::command
