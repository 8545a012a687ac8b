#include "worker/text/tokenizers/parts/split_pattern.h"

#include "absl/strings/match.h"
#include "common/base/utf8.h"
#include "worker/text/tokenizers/parts/character_class.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace hpo::text {
namespace {

struct KnownPattern {
  absl::string_view regex;
  SplitPattern pattern;
};

constexpr KnownPattern kKnownPatterns[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     SplitPattern::kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitPattern::kLlama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitPattern::kQwen2},
};

constexpr absl::string_view kContractions[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

// The long s, which is an s where case does not count.
constexpr absl::string_view kLongS = "'\u017F";

bool IsLineBreak(char c) { return c == '\r' || c == '\n'; }

// Bytes of the characters of class `wanted` that `text` begins with, from byte `begin` on.
size_t EndOfRun(absl::string_view text, size_t begin, CharacterClass wanted) {
  while (begin < text.size() && ClassOfFirst(text.substr(begin)) == wanted) {
    begin += CharacterSize(text.substr(begin));
  }
  return begin;
}

size_t ContractionSize(absl::string_view text, bool any_case) {
  if (text[0] != '\'') return 0;
  for (const absl::string_view contraction : kContractions) {
    if (absl::StartsWith(text, contraction)) return contraction.size();
    if (any_case && absl::StartsWithIgnoreCase(text, contraction)) return contraction.size();
  }
  return any_case && absl::StartsWith(text, kLongS) ? kLongS.size() : 0;
}

// \s+(?!\S)|\s+ on `text`, which begins with white space: of a run before a word the last character
// is left over, unless it is the only one.
size_t BlankSize(absl::string_view text) {
  const size_t end = EndOfRun(text, 0, CharacterClass::kSpace);
  if (end == text.size()) return end;
  const size_t last = CharacterBegin(text, end - 1);
  return last == 0 ? end : last;
}

size_t FirstGpt2Word(absl::string_view text) {
  if (const size_t size = ContractionSize(text, /*any_case=*/false); size > 0) return size;
  const size_t begin = text[0] == ' ' ? 1 : 0;
  if (begin < text.size()) {
    const CharacterClass first = ClassOfFirst(text.substr(begin));
    if (first != CharacterClass::kSpace) return EndOfRun(text, begin, first);
  }
  return BlankSize(text);
}

size_t NumberSize(absl::string_view text, int max_digits) {
  size_t end = 0;
  for (int digits = 0; digits < max_digits && end < text.size(); ++digits) {
    if (ClassOfFirst(text.substr(end)) != CharacterClass::kNumber) break;
    end += CharacterSize(text.substr(end));
  }
  return end;
}

// \s*[\r\n]+|\s+(?!\S)|\s+: up to the last line break of the white space, if it has one.
size_t BlankOrLineBreaksSize(absl::string_view text) {
  const size_t end = EndOfRun(text, 0, CharacterClass::kSpace);
  for (size_t i = end; i > 0; --i) {
    if (IsLineBreak(text[i - 1])) return i;
  }
  return BlankSize(text);
}

size_t FirstLlama3Word(absl::string_view text, int max_digits) {
  if (const size_t size = ContractionSize(text, /*any_case=*/true); size > 0) return size;
  const CharacterClass first = ClassOfFirst(text);
  if (first == CharacterClass::kLetter) return EndOfRun(text, 0, first);
  if (first == CharacterClass::kNumber) return NumberSize(text, max_digits);
  const size_t second = CharacterSize(text);
  const CharacterClass next =
      second < text.size() ? ClassOfFirst(text.substr(second)) : CharacterClass::kSpace;
  if (next == CharacterClass::kLetter && !IsLineBreak(text[0])) {
    return EndOfRun(text, second, CharacterClass::kLetter);
  }
  if (first == CharacterClass::kOther || (text[0] == ' ' && next == CharacterClass::kOther)) {
    size_t end = EndOfRun(text, text[0] == ' ' ? 1 : 0, CharacterClass::kOther);
    while (end < text.size() && IsLineBreak(text[end])) ++end;
    return end;
  }
  return BlankOrLineBreaksSize(text);
}

}  // namespace

std::optional<SplitPattern> SplitPatternOf(absl::string_view regex) {
  for (const KnownPattern& known : kKnownPatterns) {
    if (known.regex == regex) return known.pattern;
  }
  return std::nullopt;
}

size_t FirstWordSize(SplitPattern pattern, absl::string_view text) {
  switch (pattern) {
    case SplitPattern::kGpt2:
      return FirstGpt2Word(text);
    case SplitPattern::kLlama3:
      return FirstLlama3Word(text, 3);
    case SplitPattern::kQwen2:
      return FirstLlama3Word(text, 1);
  }
  return text.size();
}

}  // namespace hpo::text
