// Keys and values of dicts as Python, JSON and JavaScript print them. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace hpo::command {

inline constexpr size_t kNowhere = absl::string_view::npos;

bool IsQuote(char c);

// Past the string whose quote is at `begin`; npos: its line ends before.
size_t PastString(absl::string_view text, size_t begin);

// Whether the quote at `i` may begin a string: the apostrophe of a word does not.
bool MayBeginString(absl::string_view text, size_t i);

// What closes the bracket at `i`; 0: it opens nothing. As in <class 'float'>, not as in a < b.
char CloserOf(absl::string_view text, size_t i);

// The first of `ends` at or after `begin` that stands outside of strings and brackets; the text's
// size: there is none; npos: a bracket closes that was not opened.
size_t FindOutside(absl::string_view text, size_t begin, absl::string_view ends);

// The one number that a value is; nullopt: it is something else.
std::optional<double> NumberOfValue(absl::string_view text);

// The name that a key is; nullopt: it is no string.
std::optional<std::string> NameOfKey(absl::string_view key);

}  // namespace hpo::command
