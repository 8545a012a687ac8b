#include "worker/text/tokenizers/pipeline/phrase_tokens.h"

#include <algorithm>
#include <optional>

#include "common/base/utf8.h"
#include "worker/text/tokenizers/parts/character_class.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace hpo::text {
namespace {

bool BeginsWithWordCharacter(absl::string_view text) {
  return !text.empty() && IsWordCharacter(FirstCharacter(text));
}

bool EndsWithWordCharacter(absl::string_view text) {
  if (text.empty()) return false;
  return BeginsWithWordCharacter(text.substr(CharacterBegin(text, text.size() - 1)));
}

// Whether no word goes on over either end.
bool IsWhole(absl::string_view text, const ByteRange& range) {
  const absl::string_view phrase = text.substr(range.begin, range.end - range.begin);
  const bool cut_at_begin =
      EndsWithWordCharacter(text.substr(0, range.begin)) && BeginsWithWordCharacter(phrase);
  const bool cut_at_end =
      EndsWithWordCharacter(phrase) && BeginsWithWordCharacter(text.substr(range.end));
  return !cut_at_begin && !cut_at_end;
}

size_t BoundaryBefore(absl::string_view text, size_t place) {
  return CharacterBegin(text, place - 1);
}

size_t BoundaryAfter(absl::string_view text, size_t place) {
  return place + CharacterSize(text.substr(place));
}

ByteRange WithoutBlanks(absl::string_view text, ByteRange range) {
  while (range.begin < range.end && IsWhiteSpace(FirstCharacter(text.substr(range.begin)))) {
    range.begin = BoundaryAfter(text, range.begin);
  }
  while (range.begin < range.end) {
    const size_t last = BoundaryBefore(text, range.end);
    if (!IsWhiteSpace(FirstCharacter(text.substr(last)))) break;
    range.end = last;
  }
  return range;
}

// Bytes; what lies farther off is not looked for.
constexpr size_t kLongestToken = 64;

}  // namespace

TokenizedText::CommonBeginning TokenizedText::Compare(const std::vector<int32_t>& part,
                                                      const std::vector<int32_t>& all) {
  const size_t most = std::min(part.size(), all.size());
  size_t common = 0;
  while (common < most && part[common] == all[common]) ++common;
  return {.tokens = static_cast<int64_t>(common), .is_whole = common == part.size()};
}

std::vector<ByteRange> FindPhrase(absl::string_view text, absl::string_view phrase) {
  std::vector<ByteRange> anywhere;
  std::vector<ByteRange> whole;
  if (phrase.empty()) return anywhere;
  for (size_t at = text.find(phrase); at != absl::string_view::npos;) {
    const ByteRange range{.begin = at, .end = at + phrase.size()};
    const bool is_whole = IsWhole(text, range);
    if (is_whole) whole.push_back(range);
    if (anywhere.empty() || anywhere.back().end <= at) anywhere.push_back(range);
    at = text.find(phrase, is_whole ? range.end : at + 1);
  }
  return whole.empty() ? anywhere : whole;
}

TokenizedText::TokenizedText(absl::string_view text, const Tokenizer& tokenizer)
    : text_(text), tokenizer_(tokenizer), pieces_(PiecesOf(text)) {}

TokenRange TokenizedText::TokensOf(const ByteRange& bytes) const {
  const auto num_pieces = static_cast<int64_t>(pieces_.size());
  if (num_pieces == 0) return {};
  const CommonBeginning before = NearestTokens(bytes.begin, /*backward=*/true);
  const CommonBeginning with = NearestTokens(bytes.end, /*backward=*/false);
  const int64_t begin = std::min(before.tokens, num_pieces - 1);
  const int64_t end = with.tokens + (with.is_whole ? 0 : 1);
  return {.begin = begin, .end = std::clamp(end, begin + 1, num_pieces)};
}

TokenizedText::CommonBeginning TokenizedText::NearestTokens(size_t place, bool backward) const {
  const CommonBeginning here = TokensUpTo(place);
  const size_t farthest = backward ? place : text_.size() - place;
  CommonBeginning nearest = here;
  for (size_t bytes = 1; !nearest.is_whole && bytes <= std::min(farthest, kLongestToken); ++bytes) {
    const size_t other = backward ? place - bytes : place + bytes;
    nearest = TokensUpTo(other);
  }
  return nearest.is_whole ? nearest : here;
}

ByteRange TokenizedText::BytesOf(const TokenRange& tokens) const {
  const auto num_pieces = static_cast<int64_t>(pieces_.size());
  const int64_t begin = std::clamp<int64_t>(tokens.begin, 0, num_pieces);
  const int64_t end = std::clamp<int64_t>(tokens.end, begin, num_pieces);
  if (begin == end) return {};
  const ByteRange bytes{.begin = PlaceAfter(begin, /*backward=*/true),
                        .end = PlaceAfter(end, /*backward=*/false)};
  return WithoutBlanks(text_, bytes);
}

size_t TokenizedText::PlaceAfter(int64_t tokens, bool backward) const {
  if (tokens == 0) return 0;
  if (tokens == static_cast<int64_t>(pieces_.size())) return text_.size();
  const size_t beyond = PlaceBeyond(tokens);
  for (size_t place = beyond; place > 0 && beyond - place <= kLongestToken;) {
    place = BoundaryBefore(text_, place);
    const CommonBeginning before = TokensUpTo(place);
    if (!before.is_whole || before.tokens > tokens) continue;
    if (before.tokens == tokens || backward) return place;
    break;
  }
  for (size_t place = beyond; place - beyond <= kLongestToken;
       place = BoundaryAfter(text_, place)) {
    if (place == text_.size() || TokensUpTo(place).is_whole) return place;
  }
  return beyond;
}

size_t TokenizedText::PlaceBeyond(int64_t tokens) const {
  size_t low = 0;
  size_t high = text_.size();
  while (BoundaryAfter(text_, low) < high) {
    size_t middle = CharacterBegin(text_, low + (high - low) / 2);
    if (middle == low) middle = BoundaryAfter(text_, low);
    (TokensUpTo(middle).tokens > tokens ? high : low) = middle;
  }
  return high;
}

TokenizedText::CommonBeginning TokenizedText::TokensUpTo(size_t place) const {
  return Compare(PiecesOf(text_.substr(0, place)), pieces_);
}

std::vector<int32_t> TokenizedText::PiecesOf(absl::string_view text) const {
  const Encoding encoding = tokenizer_.Encode(text, std::nullopt, kNoTruncation);
  const auto first = encoding.ids.begin();
  return {first + encoding.text.begin, first + encoding.text.end};
}

}  // namespace hpo::text
