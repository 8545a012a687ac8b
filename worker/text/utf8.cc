#include "worker/text/utf8.h"

#include <utf8proc.h>

#include <algorithm>

namespace hpo {

size_t FindInvalidUtf8(absl::string_view text) {
  const auto* const begin = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto* const end = begin + text.size();
  const auto* at = begin;
  while (at != end) {
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

}  // namespace hpo
