// Which tokens of a text a phrase is. Tokenizers do not say where in the text a token comes from:
// as many tokens lie before a place as the text up to there has. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/text/tokenizers/tokenizer.h"

namespace hpo {

// Bytes [begin, end) of a text.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

// Where `phrase` occurs in `text`, letter for letter, in order, none over another: as whole words,
// or where it nowhere is one (as in languages without blanks), anywhere. Empty for an empty phrase.
// Both are UTF-8.
std::vector<ByteRange> FindPhrase(absl::string_view text, absl::string_view phrase);

// The text and the tokenizer outlive it.
class TokenizedText {
 public:
  TokenizedText(absl::string_view text, const Tokenizer& tokenizer);

  // The tokens of these bytes, which are not empty: numbers among those of the text alone. A token
  // in which an end lies is one of them, and one of the blank before them, where blanks have tokens
  // of their own. Never empty but where the text has no tokens.
  TokenRange TokensOf(const ByteRange& bytes) const;

 private:
  // What two lists of tokens have in common.
  struct CommonBeginning {
    int64_t tokens = 0;
    bool is_whole = false;  // of the first
  };
  static CommonBeginning Compare(const std::vector<int32_t>& part, const std::vector<int32_t>& all);
  // The text's tokens up to `place`, or where one goes on over it, up to the token's end nearest to
  // it: there all tokens of the text up to it are a beginning of the whole text's.
  CommonBeginning NearestTokens(size_t place, bool backward) const;
  std::vector<int32_t> PiecesOf(absl::string_view text) const;

  absl::string_view text_;
  const Tokenizer& tokenizer_;
  std::vector<int32_t> pieces_;
};

}  // namespace hpo
