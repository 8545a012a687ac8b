// Which tokens of a text a phrase is, and which phrase some tokens are. Tokenizers do not say where
// in the text a token comes from: as many tokens lie before a place as the text up to there has.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo::text {

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

  // The bytes of these tokens of the text alone, whole characters without white space at the ends:
  // what TokensOf gives them for. A character that an end cuts is one of them. Empty for blanks,
  // and for tokens that the text does not have.
  ByteRange BytesOf(const TokenRange& tokens) const;
  std::string PhraseOf(const TokenRange& tokens) const {
    const ByteRange bytes = BytesOf(tokens);
    return std::string(text_.substr(bytes.begin, bytes.end - bytes.begin));
  }

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
  // The last place up to which the text has these tokens and no others; where it has none, as in a
  // character of several tokens, the nearest before (after) it.
  size_t PlaceAfter(int64_t tokens, bool backward) const;
  // A place before which tokens end that come after the first `tokens`. tokens < pieces_.size().
  size_t PlaceBeyond(int64_t tokens) const;
  CommonBeginning TokensUpTo(size_t place) const;
  std::vector<int32_t> PiecesOf(absl::string_view text) const;

  absl::string_view text_;
  const Tokenizer& tokenizer_;
  std::vector<int32_t> pieces_;
};

}  // namespace hpo::text
