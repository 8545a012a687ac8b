#include "worker/text/files/text_place.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"

namespace hpo::text {
namespace {

// A file's content can be part of a message, however long it is.
constexpr Limit kLongestMessage = {.most = 440, .unit = "bytes"};

}  // namespace

TextPlace PlaceOf(absl::string_view text, size_t byte, TextPlace begin) {
  const absl::string_view before = text.substr(0, byte);
  int64_t lines = 0;
  size_t line_begin = 0;
  for (size_t at = before.find_first_of("\r\n"); at < before.size();
       at = before.find_first_of("\r\n", at + 1)) {
    if (before[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n') continue;
    ++lines;
    line_begin = at + 1;
  }
  const absl::string_view line = before.substr(line_begin);
  const auto characters = std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  });
  return {.line = begin.line + lines, .column = (lines == 0 ? begin.column : 1) + characters};
}

absl::Status DataError(absl::string_view origin, int64_t line, absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat(origin, ":", line, ": ", Shortened(message, kLongestMessage)));
}

absl::Status DataError(absl::string_view origin, TextPlace place, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(origin, ":", place.line, ":", place.column, ": ",
                                                 Shortened(message, kLongestMessage)));
}

void ReplacedCharacters::Add(absl::string_view origin, TextPlace place, absl::string_view what) {
  if (count++ > 0) return;
  first = absl::StrCat(origin, ":", place.line, ":", place.column, ": ", what,
                       " was replaced by U+FFFD");
}

std::string ReplacedCharacters::Warning() const {
  if (count < 2) return first;
  return absl::StrCat(first, ", as were ", count - 1, " more of this file");
}

}  // namespace hpo::text
