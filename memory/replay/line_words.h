// Lines and words of a text, taken one after the other.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace hpo::memory {

// Returns `text` until `separator`, or all of it, and removes it with the separator from `text`.
inline std::string_view TakeUntil(char separator, std::string_view& text) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

// Takes a word and reads it as a whole number that is not negative. Returns whether it is one.
inline bool TakeNumber(std::string_view& text, int64_t& number) {
  const std::string_view word = TakeUntil(' ', text);
  const char* const end = word.data() + word.size();
  const auto [read, error] = std::from_chars(word.data(), end, number);
  return error == std::errc() && read == end && number >= 0;
}

// Takes a word and reads it as a number that is not negative. Returns whether it is one.
inline bool TakeFraction(std::string_view& text, double& number) {
  const std::string word(TakeUntil(' ', text));
  char* end = nullptr;
  number = std::strtod(word.c_str(), &end);
  return !word.empty() && *end == '\0' && number >= 0.0;
}

}  // namespace hpo::memory
