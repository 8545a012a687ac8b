#include "common/files/log_tail.h"

#include <cstddef>

#include "common/base/limits.h"
#include "common/base/utf8.h"

namespace hpo {
namespace {

constexpr auto kMostBytes = static_cast<size_t>(kLogTailLimit.most);

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// What is left to look at: everything before it is cut off in any case.
absl::string_view LastBytes(absl::string_view text) {
  if (text.size() <= kMostBytes) return text;
  const bool after_newline = text[text.size() - kMostBytes - 1] == '\n';
  absl::string_view last = text.substr(text.size() - kMostBytes);
  if (after_newline) return last;
  const size_t newline = last.find('\n');
  // A newline that ends the text begins no line.
  if (newline != absl::string_view::npos && newline + 1 < last.size()) {
    return last.substr(newline + 1);
  }
  while (!last.empty() && ContinuesCharacter(last.front())) last.remove_prefix(1);
  return last;
}

}  // namespace

std::string CheckedLogTail(absl::string_view text) {
  std::string checked;
  for (absl::string_view left = LastBytes(text); !left.empty();) {
    const Utf8Character character = FirstUtf8Character(left);
    const bool is_kept = left[0] == '\n' || left[0] == '\t' ||
                         (character.code != 0 && !SteersTerminal(character.code));
    if (is_kept) {
      checked.append(left.data(), character.size);
    } else {
      checked += '?';
    }
    left.remove_prefix(character.size);
  }
  return checked;
}

}  // namespace hpo
