#include "worker/text/tokenizers/parts/charsmap.h"

#include <utf8proc.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/utf8.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace hpo::text {
namespace {

constexpr size_t kUnitBytes = sizeof(uint32_t);

// Clusters of this many bytes or more are not looked up as a whole.
constexpr size_t kWideCluster = 6;

// The fields of a unit of darts-clone's array.
constexpr bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
constexpr uint32_t Value(uint32_t unit) { return unit & 0x7FFFFFFF; }
constexpr uint32_t Label(uint32_t unit) { return unit & 0x800000FF; }
constexpr uint32_t Offset(uint32_t unit) { return unit >> 10 << ((unit & 1 << 9) >> 6); }

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// Bytes of the grapheme cluster that `text` begins with.
size_t ClusterSize(absl::string_view text) {
  utf8proc_int32_t state = 0;
  int32_t before = FirstCharacter(text);
  size_t size = CharacterSize(text);
  while (size < text.size()) {
    const int32_t character = FirstCharacter(text.substr(size));
    if (utf8proc_grapheme_break_stateful(before, character, &state)) break;
    before = character;
    size += CharacterSize(text.substr(size));
  }
  return size;
}

}  // namespace

absl::StatusOr<Charsmap> Charsmap::Parse(absl::string_view blob) {
  Charsmap map;
  if (blob.empty()) return map;
  if (blob.size() < kUnitBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("byte 0: expected a size of 4 bytes, got ", blob.size(), " bytes in all"));
  }
  uint32_t trie_bytes = 0;
  std::memcpy(&trie_bytes, blob.data(), kUnitBytes);
  blob.remove_prefix(kUnitBytes);
  if (trie_bytes == 0 || trie_bytes % kUnitBytes != 0 || trie_bytes >= blob.size()) {
    return absl::InvalidArgumentError(absl::StrCat("byte 0: expected the size of a trie in the ",
                                                   blob.size(), " bytes after it, got ",
                                                   trie_bytes));
  }
  map.units_.resize(trie_bytes / kUnitBytes);
  std::memcpy(map.units_.data(), blob.data(), trie_bytes);
  blob.remove_prefix(trie_bytes);
  if (blob.back() != '\0') {
    return absl::InvalidArgumentError(absl::StrCat("byte ",
                                                   kUnitBytes + trie_bytes + blob.size() - 1,
                                                   ": expected the NUL that ends a string"));
  }
  if (const size_t invalid = FindInvalidUtf8(blob); invalid != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("byte ", kUnitBytes + trie_bytes + invalid,
                                                   ": expected UTF-8, got other bytes"));
  }
  map.rewritten_ = std::string(blob);
  map.NoteUntouched();
  return map;
}

template <typename Visit>
void Charsmap::ForEachRule(absl::string_view text, Visit visit) const {
  if (units_.empty()) return;
  size_t node = Offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    node ^= static_cast<unsigned char>(text[i]);
    if (node >= units_.size()) return;
    const uint32_t unit = units_[node];
    if (Label(unit) != static_cast<unsigned char>(text[i])) return;
    node ^= Offset(unit);
    if (!HasLeaf(unit)) continue;
    if (node >= units_.size() || !visit(i + 1, Value(units_[node]))) return;
  }
}

absl::string_view Charsmap::RewrittenAt(uint32_t offset) const {
  if (offset >= rewritten_.size()) return "";
  return rewritten_.c_str() + offset;
}

Charsmap::Rewrite Charsmap::Longest(absl::string_view text) const {
  Rewrite longest;
  uint32_t offset = 0;
  ForEachRule(text, [&](size_t size, uint32_t at) {
    longest.size = size;
    offset = at;
    return true;
  });
  if (longest.size > 0) longest.text = RewrittenAt(offset);
  return longest;
}

Charsmap::Rewrite Charsmap::Shortest(absl::string_view text) const {
  Rewrite shortest;
  ForEachRule(text, [&](size_t size, uint32_t at) {
    shortest = {size, RewrittenAt(at)};
    return false;
  });
  return shortest;
}

void Charsmap::NoteUntouched() {
  const auto child = [&](size_t node, size_t byte) -> size_t {
    const size_t at = node ^ byte;
    return at < units_.size() && Label(units_[at]) == byte ? at : 0;
  };
  for (size_t first = 0; first < never_begins_.size(); ++first) {
    const size_t at = child(Offset(units_[0]), first);
    never_begins_[first] = at == 0;
    if (at == 0) continue;
    begins_wide_only_[first] = !HasLeaf(units_[at]);
    const size_t below = at ^ Offset(units_[at]);
    for (size_t second = 0; second < 128; ++second) {
      if (child(below, second) != 0) begins_wide_only_[first] = false;
    }
  }
}

size_t Charsmap::UntouchedAscii(absl::string_view text) const {
  size_t size = 0;
  while (size < text.size() && IsAscii(text[size])) {
    const auto byte = static_cast<unsigned char>(text[size]);
    const bool before_ascii = size + 1 == text.size() || IsAscii(text[size + 1]);
    if (!never_begins_[byte] && !(begins_wide_only_[byte] && before_ascii)) break;
    ++size;
  }
  return size;
}

std::string Charsmap::RewriteGraphemes(absl::string_view text) const {
  std::string rewritten;
  rewritten.reserve(text.size() + text.size() / 8);
  const auto rewrite = [&](absl::string_view part) {
    const Rewrite rule = Shortest(part);
    if (rule.size > 0) rewritten.append(rule.text.data(), rule.text.size());
    return rule.size > 0;
  };
  while (!text.empty()) {
    // The last of the ASCII may begin a cluster with a mark after it.
    size_t ascii = UntouchedAscii(text);
    if (ascii > 0 && ascii < text.size()) --ascii;
    rewritten.append(text.data(), ascii);
    text.remove_prefix(ascii);
    if (text.empty()) break;
    const absl::string_view cluster = text.substr(0, ClusterSize(text));
    text.remove_prefix(cluster.size());
    if (cluster.size() < kWideCluster && rewrite(cluster)) continue;
    for (absl::string_view rest = cluster; !rest.empty();) {
      const absl::string_view character = rest.substr(0, CharacterSize(rest));
      if (!rewrite(character)) rewritten.append(character.data(), character.size());
      rest.remove_prefix(character.size());
    }
  }
  return rewritten;
}

}  // namespace hpo::text
