// Whether bytes from outside are UTF-8, before they reach JSON and Protobuf, which hold nothing
// else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace hpo {

// How many leading bytes of `text` are whole UTF-8 characters: text.size() when all of it is UTF-8.
// Overlong forms, surrogates and what lies above U+10FFFF are not. Source: RFC 3629, section 4.
size_t ValidUtf8Prefix(absl::string_view text);

struct Utf8Character {
  uint32_t code = 0;  // 0: not UTF-8
  size_t size = 1;    // bytes
};

// The character that `text`, which is not empty, begins with; of what is not UTF-8, a byte.
Utf8Character FirstUtf8Character(absl::string_view text);

// Whether a terminal does something else than show it: C0 and C1 controls, DEL, and what turns the
// direction of writing.
bool SteersTerminal(uint32_t code);

}  // namespace hpo
