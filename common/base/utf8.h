// Whether bytes from outside are UTF-8, before they reach JSON and Protobuf, which hold nothing
// else; and what their characters are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace hpo {

// How many leading bytes of `text` are whole UTF-8 characters: text.size() when all of it is UTF-8.
// Overlong forms, surrogates and what lies above U+10FFFF are not. Source: RFC 3629, section 4.
size_t ValidUtf8Prefix(absl::string_view text);

// Bytes of the character that `text` begins with. `text`: well-formed UTF-8, not empty.
inline size_t CharacterSize(absl::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

// The first character of `text`. `text`: well-formed UTF-8, not empty.
int32_t FirstCharacter(absl::string_view text);

struct Utf8Character {
  uint32_t code = 0;  // 0: not UTF-8
  size_t size = 1;    // bytes
};

// The character that `text`, which is not empty, begins with; of what is not UTF-8, a byte.
Utf8Character FirstUtf8Character(absl::string_view text);

// `text`; where it has more than `most` bytes its first ones and "...". Characters stay whole.
std::string CutAfter(absl::string_view text, size_t most);

// Whether a terminal does something else than show it: C0 and C1 controls, DEL, and what turns the
// direction of writing.
bool SteersTerminal(uint32_t code);

}  // namespace hpo
