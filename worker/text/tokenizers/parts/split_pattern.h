// The regular expressions by which byte-level tokenizers cut text into words, written out by hand.
#pragma once

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"

namespace hpo::text {

enum class SplitPattern {
  kGpt2,    // GPT-2 and RoBERTa: contractions, letters, digits, others, with a blank before each
  kLlama3,  // up to three digits together, line breaks apart, any one character before letters
  kQwen2,   // the same with single digits
};

// The pattern that `regex` writes out; nullopt for any other regular expression.
std::optional<SplitPattern> SplitPatternOf(absl::string_view regex);

// Bytes of the first word of `text`. Every pattern cuts any text without remainder.
// `text`: well-formed UTF-8, not empty. O(bytes of the word and of the white space after it).
size_t FirstWordSize(SplitPattern pattern, absl::string_view text);

}  // namespace hpo::text
