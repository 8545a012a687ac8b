// SentencePiece's precompiled_charsmap: rewriting rules for strings of characters (NFKC and the
// like), as a double-array trie over the strings and a list of what they become.
// Format: Kudo's SentencePiece, normalizer.cc; the trie is Yata's darts-clone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo::text {

// Immutable after Parse; safe to share between threads.
class Charsmap {
 public:
  struct Rewrite {
    size_t size = 0;         // bytes of text that are rewritten; 0: no rule
    absl::string_view text;  // what they become, of the lifetime of the map
  };

  // No rules at all.
  Charsmap() = default;

  // An empty `blob` is a map without rules.
  //   InvalidArgument  a blob too short for what it says of itself, or not UTF-8; names the byte
  static absl::StatusOr<Charsmap> Parse(absl::string_view blob);

  // The rule for the longest (shortest) string of the map that `text` begins with.
  Rewrite Longest(absl::string_view text) const;
  Rewrite Shortest(absl::string_view text) const;

  // How many leading bytes of `text` are ASCII that no rule can touch.
  size_t UntouchedAscii(absl::string_view text) const;

  // `text` rewritten as Hugging Face's Precompiled normalizer does: grapheme clusters of up to
  // five bytes as a whole by their shortest rule, other characters one by one.
  // `text`: well-formed UTF-8.
  std::string RewriteGraphemes(absl::string_view text) const;

 private:
  // visit(size, rewritten) for each rule that `text` begins with, shortest first, while it is true.
  template <typename Visit>
  void ForEachRule(absl::string_view text, Visit visit) const;
  absl::string_view RewrittenAt(uint32_t offset) const;
  void NoteUntouched();

  std::vector<uint32_t> units_;
  std::string rewritten_;  // NUL-terminated strings
  // ASCII that no rule begins with, and ASCII that only rules with wider characters begin with.
  std::array<bool, 128> never_begins_ = AllTrue();
  std::array<bool, 128> begins_wide_only_ = AllTrue();

  static constexpr std::array<bool, 128> AllTrue() {
    std::array<bool, 128> all{};
    all.fill(true);
    return all;
  }
};

}  // namespace hpo::text
