// Tested by tests/worker/text/tokenizers/families/tokenizer_json_parts_test.cc.
#include "worker/text/tokenizers/parts/word_splitter.h"

#include <algorithm>
#include <span>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "worker/text/tokenizers/parts/character_class.h"

namespace hpo::text {
namespace {

// Takes a part of the text, and whether it is the start of the whole input.
using PartSink = absl::FunctionRef<void(absl::string_view, bool)>;

// A stretch of text that is a place to cut at, or lies between two.
struct Stretch {
  size_t begin = 0;
  size_t end = 0;
  bool is_match = false;
};

void Merge(SplitBehavior behavior, std::vector<Stretch>& stretches) {
  std::vector<Stretch> merged;
  const bool backwards = behavior == SplitBehavior::kMergedWithNext;
  if (backwards) std::reverse(stretches.begin(), stretches.end());
  bool after_match = false;
  for (const Stretch& stretch : stretches) {
    const bool joins = behavior == SplitBehavior::kContiguous ? stretch.is_match == after_match
                                                              : stretch.is_match && !after_match;
    after_match = stretch.is_match;
    if (joins && !merged.empty()) {
      merged.back().begin = std::min(merged.back().begin, stretch.begin);
      merged.back().end = std::max(merged.back().end, stretch.end);
    } else {
      merged.push_back(stretch);
    }
  }
  if (backwards) std::reverse(merged.begin(), merged.end());
  stretches = std::move(merged);
}

// match_size(rest): bytes of the match that `rest` begins with, 0 for none.
template <typename MatchSize>
void SplitAtMatches(absl::string_view text, SplitBehavior behavior, bool at_start, PartSink sink,
                    MatchSize match_size) {
  std::vector<Stretch> stretches;
  size_t unmatched = 0;  // where the stretch without match begins
  for (size_t at = 0; at < text.size();) {
    const absl::string_view rest = text.substr(at);
    const size_t size = match_size(rest);
    if (size == 0) {
      at += CharacterSize(rest);
      continue;
    }
    if (unmatched < at) stretches.push_back({unmatched, at, false});
    stretches.push_back({at, at + size, true});
    at += size;
    unmatched = at;
  }
  if (unmatched < text.size()) stretches.push_back({unmatched, text.size(), false});
  const bool merges = behavior != SplitBehavior::kRemoved && behavior != SplitBehavior::kIsolated;
  if (merges) Merge(behavior, stretches);
  for (const Stretch& stretch : stretches) {
    if (stretch.is_match && behavior == SplitBehavior::kRemoved) continue;
    sink(text.substr(stretch.begin, stretch.end - stretch.begin), at_start && stretch.begin == 0);
  }
}

bool IsOfClass(SplitAtClass::What what, int32_t character) {
  switch (what) {
    case SplitAtClass::What::kWhiteSpace:
      return IsWhiteSpace(character);
    case SplitAtClass::What::kPunctuation:
      return IsBertPunctuation(character);
    case SplitAtClass::What::kDigits:
      return ClassOf(character) == CharacterClass::kNumber;
  }
  return false;
}

void Split(const SplitAtPattern& step, absl::string_view text, bool at_start, PartSink sink) {
  while (!text.empty()) {
    const size_t size = FirstWordSize(step.pattern, text);
    sink(text.substr(0, size), at_start);
    at_start = false;
    text.remove_prefix(size);
  }
}

void Split(const SplitAtLiteral& step, absl::string_view text, bool at_start, PartSink sink) {
  SplitAtMatches(text, step.behavior, at_start, sink, [&](absl::string_view rest) {
    return absl::StartsWith(rest, step.literal) ? step.literal.size() : 0;
  });
}

void Split(const SplitAtClass& step, absl::string_view text, bool at_start, PartSink sink) {
  SplitAtMatches(text, step.behavior, at_start, sink, [&](absl::string_view rest) {
    return IsOfClass(step.what, FirstCharacter(rest)) ? CharacterSize(rest) : 0;
  });
}

void Split(const SplitWordCharacters&, absl::string_view text, bool at_start, PartSink sink) {
  enum class Kind { kBlank, kWord, kOther };
  const auto kind_of = [](absl::string_view rest) {
    const int32_t character = FirstCharacter(rest);
    if (IsWordCharacter(character)) return Kind::kWord;
    return IsWhiteSpace(character) ? Kind::kBlank : Kind::kOther;
  };
  for (size_t begin = 0; begin < text.size();) {
    const Kind kind = kind_of(text.substr(begin));
    size_t end = begin;
    while (end < text.size() && kind_of(text.substr(end)) == kind) {
      end += CharacterSize(text.substr(end));
    }
    if (kind != Kind::kBlank) sink(text.substr(begin, end - begin), at_start && begin == 0);
    begin = end;
  }
}

void Split(const SplitAtBlanks&, absl::string_view text, bool at_start, PartSink sink) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) sink(text.substr(0, end), at_start);
    at_start = false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void Split(const PrefixBlank&, absl::string_view text, bool at_start, PartSink sink) {
  if (absl::StartsWith(text, " ")) return sink(text, at_start);
  sink(absl::StrCat(" ", text), at_start);
}

void Split(const Metaspace& step, absl::string_view text, bool at_start, PartSink sink) {
  std::string replaced = absl::StrReplaceAll(text, {{" ", step.replacement}});
  const bool prefixes = step.prefix == Metaspace::Prefix::kAlways ||
                        (step.prefix == Metaspace::Prefix::kFirst && at_start);
  if (prefixes && !absl::StartsWith(replaced, step.replacement)) {
    replaced.insert(0, step.replacement);
  }
  absl::string_view rest = replaced;
  while (step.split && !rest.empty()) {
    const size_t end = std::min(rest.find(step.replacement, 1), rest.size());
    sink(rest.substr(0, end), at_start);
    at_start = false;
    rest.remove_prefix(end);
  }
  if (!rest.empty()) sink(rest, at_start);
}

void SplitFrom(std::span<const SplitStep> steps, absl::string_view text, bool at_start,
               WordSink sink) {
  if (steps.empty()) return sink(text);
  const auto next = [&](absl::string_view part, bool part_at_start) {
    SplitFrom(steps.subspan(1), part, part_at_start, sink);
  };
  std::visit([&](const auto& step) { Split(step, text, at_start, next); }, steps.front());
}

}  // namespace

void SplitWords(const std::vector<SplitStep>& steps, absl::string_view text, bool at_start,
                WordSink sink) {
  if (!text.empty()) SplitFrom(steps, text, at_start, sink);
}

}  // namespace hpo::text
