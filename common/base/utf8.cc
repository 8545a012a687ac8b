#include "common/base/utf8.h"

#include "absl/strings/str_cat.h"

namespace hpo {
namespace {

// A row of RFC 3629's syntax: first bytes [first_low, first_high] are followed by one byte in
// [second_low, second_high] and then by bytes in [0x80, 0xBF], `length` bytes in all.
struct Form {
  uint8_t first_low;
  uint8_t first_high;
  uint8_t second_low;
  uint8_t second_high;
  size_t length;
};

constexpr Form kForms[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
    {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
    {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

bool Matches(const Form& form, absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < form.first_low || byte(0) > form.first_high) return false;
  if (text.size() < form.length) return false;
  if (byte(1) < form.second_low || byte(1) > form.second_high) return false;
  for (size_t i = 2; i < form.length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return false;
  }
  return true;
}

// Length of the character that `text` (not empty) begins with; 0 when it begins with none.
size_t CharacterLength(absl::string_view text) {
  if (static_cast<uint8_t>(text[0]) < 0x80) return 1;
  for (const Form& form : kForms) {
    if (Matches(form, text)) return form.length;
  }
  return 0;
}

}  // namespace

size_t ValidUtf8Prefix(absl::string_view text) {
  size_t valid = 0;
  while (valid < text.size()) {
    const size_t length = CharacterLength(text.substr(valid));
    if (length == 0) return valid;
    valid += length;
  }
  return valid;
}

int32_t FirstCharacter(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  switch (CharacterSize(text)) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
             (byte(3) & 0x3F);
  }
}

Utf8Character FirstUtf8Character(absl::string_view text) {
  const size_t size = CharacterLength(text);
  if (size == 0) return {};
  return {.code = static_cast<uint32_t>(FirstCharacter(text)), .size = size};
}

std::string CutAfter(absl::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  size_t end = most;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

bool SteersTerminal(uint32_t code) {
  const auto within = [code](uint32_t low, uint32_t high) { return low <= code && code <= high; };
  return code < 0x20 || within(0x7F, 0x9F) || within(0x202A, 0x202E) || within(0x2066, 0x2069);
}

}  // namespace hpo
