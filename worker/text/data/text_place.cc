#include "worker/text/data/text_place.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hpo {

TextPlace PlaceOf(absl::string_view text, size_t byte, TextPlace begin) {
  const absl::string_view before = text.substr(0, byte);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const absl::string_view line = lines == 0 ? before : before.substr(before.rfind('\n') + 1);
  const auto characters = std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  });
  return {.line = begin.line + lines, .column = (lines == 0 ? begin.column : 1) + characters};
}

absl::Status DataError(absl::string_view origin, int64_t line, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(origin, ":", line, ": ", message));
}

absl::Status DataError(absl::string_view origin, TextPlace place, absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat(origin, ":", place.line, ":", place.column, ": ", message));
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

}  // namespace hpo
