// SentencePiece's way from text to the string that is cut into pieces: rewriting rules, blanks
// joined and written as U+2581, one put before the text.
// Source: Kudo and Richardson 2018, arXiv:1808.06226; strings equal SentencePiece 0.1.97's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/text/tokenizers/parts/charsmap.h"
#include "worker/text/tokenizers/parts/vocab_trie.h"

namespace hpo::text {

// U+2581 as UTF-8, which stands for a blank.
inline constexpr absl::string_view kBlankSymbol = "\xE2\x96\x81";

struct SentencePieceNormalization {
  Charsmap charsmap;
  bool add_dummy_prefix = true;           // a blank before the text
  bool remove_extra_whitespaces = true;   // none at the ends, one for many
  bool escape_whitespaces = true;         // blanks as U+2581
  bool blank_as_suffix = false;           // the dummy blank after the text instead
  std::vector<std::string> user_defined;  // left as they are
};

// Immutable; safe to share between threads.
class SentencePieceNormalizer {
 public:
  explicit SentencePieceNormalizer(SentencePieceNormalization options);

  // `text`: well-formed UTF-8. Empty where nothing but white space is left and that is removed.
  std::string Normalize(absl::string_view text) const;

 private:
  class Writer;

  // A part of the text and what it becomes; both never empty but for rules that delete.
  struct Part {
    size_t size = 0;
    absl::string_view text;
  };
  Part FirstPart(absl::string_view text) const;

  SentencePieceNormalization options_;
  std::optional<VocabTrie> user_defined_;
};

}  // namespace hpo::text
