// Characters as the regular expressions of tokenizers class them: \p{L}, \p{N}, \s and the rest.
// Categories are utf8proc's Unicode version (15 with utf8proc 2.8), white space is Unicode's
// property White_Space.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/base/utf8.h"

namespace hpo::text {

// The one character that lower-cases to two, i and a dot above.
inline constexpr int32_t kCapitalIWithDot = 0x130;

enum class CharacterClass : uint8_t { kOther, kLetter, kNumber, kSpace };

CharacterClass ClassOfWide(int32_t character);

// The class of any code point.
inline CharacterClass ClassOf(int32_t c) {
  if (c >= 0x80) return ClassOfWide(c);
  if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return CharacterClass::kLetter;
  if (c >= '0' && c <= '9') return CharacterClass::kNumber;
  if (c == ' ' || (c >= '\t' && c <= '\r')) return CharacterClass::kSpace;
  return CharacterClass::kOther;
}

// The class of the character `text` begins with. `text`: well-formed UTF-8, not empty.
inline CharacterClass ClassOfFirst(absl::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  return ClassOf(lead < 0x80 ? lead : FirstCharacter(text));
}

inline bool IsWhiteSpace(int32_t character) { return ClassOf(character) == CharacterClass::kSpace; }

// Regular expressions' \w: letters, marks, decimal and letter numbers, connector punctuation, the
// joiners, and the circled letters that count as alphabetic.
bool IsWordCharacter(int32_t character);

// What BERT sets apart: categories P* and all ASCII that is neither letter, digit, blank nor
// control.
bool IsBertPunctuation(int32_t character);

// Categories M*: what StripAccents drops.
bool IsMark(int32_t character);

}  // namespace hpo::text
