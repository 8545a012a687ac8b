#include "worker/text/tokenizers/parts/utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>

namespace hpo::text {
namespace {

bool IsAscii8(const utf8proc_uint8_t* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return (word & 0x8080808080808080) == 0;
}

}  // namespace

size_t FindInvalidUtf8(absl::string_view text) {
  const auto* const begin = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto* const end = begin + text.size();
  const auto* at = begin;
  while (at != end) {
    if (end - at >= 8 && IsAscii8(at)) {
      at += 8;
      continue;
    }
    if (*at < 0x80) {
      ++at;
      continue;
    }
    utf8proc_int32_t character = -1;
    const utf8proc_ssize_t size = utf8proc_iterate(at, end - at, &character);
    if (size <= 0) return static_cast<size_t>(at - begin);
    at += size;
  }
  return absl::string_view::npos;
}

size_t CountCharacters(absl::string_view text) {
  // Every character has one byte that is not a continuation byte.
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

void AppendCharacter(int32_t character, std::string& text) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(character, bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

std::string ReplaceInvalidUtf8(absl::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (true) {
    const size_t invalid = FindInvalidUtf8(text);
    const absl::string_view before = text.substr(0, invalid);
    valid.append(before.data(), before.size());
    if (invalid == absl::string_view::npos) return valid;
    AppendCharacter(0xFFFD, valid);
    text.remove_prefix(invalid + 1);
  }
}

}  // namespace hpo::text
