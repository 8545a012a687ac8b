// Checks of encoded text, and its characters one by one (with common/base/utf8.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace hpo::text {

// Where the first byte stands that is not part of well-formed UTF-8 (no surrogates, no overlong
// forms); npos when all of `text` is.
size_t FindInvalidUtf8(absl::string_view text);

// Characters of well-formed UTF-8.
size_t CountCharacters(absl::string_view text);

// Where the character begins that the byte at `place` is part of. `text`: well-formed UTF-8, longer
// than `place`.
inline size_t CharacterBegin(absl::string_view text, size_t place) {
  while (place > 0 && (static_cast<unsigned char>(text[place]) & 0xC0) == 0x80) --place;
  return place;
}

void AppendCharacter(int32_t character, std::string& text);

// `text` with U+FFFD for every byte that is not part of a character.
std::string ReplaceInvalidUtf8(absl::string_view text);

}  // namespace hpo::text
