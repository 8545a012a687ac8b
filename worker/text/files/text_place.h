// Where in a data file something stands, for messages that a person follows to the place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hpo::text {

struct TextPlace {
  int64_t line = 1;    // from 1
  int64_t column = 1;  // in characters, from 1
};

// The place of the byte at `byte` where `text` begins at `begin`. Lines end with LF, CRLF or CR.
// `text`: UTF-8, or bytes that are meant to be; byte <= text.size().
TextPlace PlaceOf(absl::string_view text, size_t byte, TextPlace begin = {});

// InvalidArgument with "origin:line: message", or "origin:line:column: message", a long message
// shortened in its middle.
absl::Status DataError(absl::string_view origin, int64_t line, absl::string_view message);
absl::Status DataError(absl::string_view origin, TextPlace place, absl::string_view message);

// Characters of a file that were replaced by U+FFFD.
struct ReplacedCharacters {
  int64_t count = 0;
  std::string first;  // "origin:line:column: ...", the sentence about the first one

  void Add(absl::string_view origin, TextPlace place, absl::string_view what);
  // One sentence about all of them; empty where there are none.
  std::string Warning() const;
};

}  // namespace hpo::text
