#include "worker/text/tokenizers/parts/character_class.h"

#include <utf8proc.h>

#include "absl/strings/ascii.h"

namespace hpo::text {
namespace {

constexpr int32_t kNextLine = 0x85;

}  // namespace

CharacterClass ClassOfWide(int32_t character) {
  if (character == kNextLine) return CharacterClass::kSpace;
  switch (utf8proc_category(character)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharacterClass::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharacterClass::kNumber;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return CharacterClass::kSpace;
    default:
      return CharacterClass::kOther;
  }
}

bool IsWordCharacter(int32_t c) {
  if (c < 0x80) return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  const utf8proc_category_t category = utf8proc_category(c);
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) return true;
  const bool circled = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                       (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  const bool joiner = c == 0x200C || c == 0x200D;
  return category == UTF8PROC_CATEGORY_PC || circled || joiner;
}

bool IsBertPunctuation(int32_t c) {
  if (c < 0x80) return absl::ascii_ispunct(static_cast<unsigned char>(c));
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool IsMark(int32_t c) {
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

}  // namespace hpo::text
