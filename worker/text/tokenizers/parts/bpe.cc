#include "worker/text/tokenizers/parts/bpe.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "absl/strings/match.h"
#include "common/base/utf8.h"
#include "worker/text/tokenizers/parts/sentencepiece_normalizer.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace hpo::text {
namespace {

// Up to so many symbols all pairs are looked at for each merge, which is faster than a heap.
constexpr size_t kShortBpeWord = 32;

// Bytes of `text` up to the first blank symbol that comes after something else.
size_t FirstPartSize(absl::string_view text) {
  size_t begin = 0;
  while (absl::StartsWith(text.substr(begin), kBlankSymbol)) begin += kBlankSymbol.size();
  return std::min(text.find(kBlankSymbol, begin), text.size());
}

bool PartsAtBlanks(const BpeVocabulary& vocabulary) {
  bool has_blank = false;
  for (const std::string& token : vocabulary.tokens) {
    if (FirstPartSize(token) < token.size()) return false;
    has_blank |= token == kBlankSymbol;
  }
  return has_blank && !vocabulary.ignore_merges &&
         vocabulary.unit == BpeVocabulary::Unit::kCharacter;
}

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

std::vector<std::string> TextsOf(std::span<const int32_t> ids, const BpeVocabulary& vocabulary) {
  std::vector<std::string> texts;
  for (const int32_t id : ids) texts.push_back(vocabulary.tokens[static_cast<size_t>(id)]);
  return texts;
}

}  // namespace

BpeModel::BpeModel(const BpeVocabulary& vocabulary)
    : unit_(vocabulary.unit),
      byte_tokens_(vocabulary.byte_tokens),
      has_byte_tokens_(std::any_of(byte_tokens_.begin(), byte_tokens_.end(),
                                   [](int32_t id) { return id >= 0; })),
      unknown_id_(vocabulary.unknown_id),
      fuse_unknown_(vocabulary.fuse_unknown),
      parts_at_blanks_(PartsAtBlanks(vocabulary)),
      frozen_ids_(vocabulary.frozen),
      frozen_(TextsOf(vocabulary.frozen, vocabulary)) {
  unit_of_byte_.fill(-1);
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (token.size() == 1) {
      unit_of_byte_[static_cast<unsigned char>(token[0])] = static_cast<int32_t>(id);
    } else if (unit_ == BpeVocabulary::Unit::kCharacter && CountCharacters(token) == 1) {
      unit_of_character_[token] = static_cast<int32_t>(id);
    }
  }
  rules_.reserve(vocabulary.merges.size());
  for (const BpeVocabulary::Merge& merge : vocabulary.merges) {
    rules_[PairKey(merge.left, merge.right)] = {merge.rank, merge.merged};
  }
  std::vector<int32_t> ids;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (token.empty()) continue;
    ids.clear();
    AppendMerged(token, ids);
    const bool whole = ids.size() == 1 && ids[0] == static_cast<int32_t>(id);
    if (!whole && !vocabulary.ignore_merges) continue;
    whole_words_[token] = static_cast<int32_t>(id);
    longest_whole_word_ = std::max(longest_whole_word_, token.size());
  }
}

void BpeModel::Append(absl::string_view word, std::vector<int32_t>& ids) const {
  while (parts_at_blanks_ && !word.empty()) {
    const size_t size = FirstPartSize(word);
    AppendPart(word.substr(0, size), ids);
    word.remove_prefix(size);
  }
  if (!word.empty()) AppendPart(word, ids);
}

void BpeModel::AppendPart(absl::string_view part, std::vector<int32_t>& ids) const {
  if (part.size() <= longest_whole_word_) {
    if (const auto whole = whole_words_.find(part); whole != whole_words_.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  AppendMerged(part, ids);
}

void BpeModel::AppendMerged(absl::string_view word, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  AppendUnits(word, ids);
  const std::span<int32_t> symbols(ids.data() + before, ids.size() - before);
  const size_t left = symbols.size() <= kShortBpeWord ? MergeShort(symbols) : MergeLong(symbols);
  ids.resize(before + left);
}

void BpeModel::AppendUnits(absl::string_view word, std::vector<int32_t>& ids) const {
  bool after_unknown = false;
  while (!word.empty()) {
    size_t size = unit_ == BpeVocabulary::Unit::kByte ? 1 : CharacterSize(word);
    int32_t id = -1;
    if (!frozen_ids_.empty()) {
      const VocabTrie::Match frozen = frozen_.LongestMatch(VocabTrie::kRoot, word);
      if (frozen.id >= 0) {
        id = frozen_ids_[static_cast<size_t>(frozen.id)];
        size = frozen.length;
      }
    }
    if (id < 0 && size == 1) {
      id = unit_of_byte_[static_cast<unsigned char>(word[0])];
    } else if (id < 0) {
      const auto found = unit_of_character_.find(word.substr(0, size));
      if (found != unit_of_character_.end()) id = found->second;
    }
    if (id >= 0) {
      ids.push_back(id);
      after_unknown = false;
    } else {
      AppendUnitWithoutToken(word.substr(0, size), ids, after_unknown);
    }
    word.remove_prefix(size);
  }
}

void BpeModel::AppendUnitWithoutToken(absl::string_view unit, std::vector<int32_t>& ids,
                                      bool& after_unknown) const {
  const bool as_bytes = has_byte_tokens_ && std::all_of(unit.begin(), unit.end(), [&](char byte) {
                          return byte_tokens_[static_cast<unsigned char>(byte)] >= 0;
                        });
  if (as_bytes) {
    for (const char byte : unit) {
      ids.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
    }
    after_unknown = false;
    return;
  }
  if (unknown_id_ < 0) return;
  if (!after_unknown || !fuse_unknown_) ids.push_back(unknown_id_);
  after_unknown = true;
}

BpeModel::Rule BpeModel::RuleOf(int32_t left, int32_t right) const {
  const auto found = rules_.find(PairKey(left, right));
  return found == rules_.end() ? Rule{} : found->second;
}

size_t BpeModel::MergeShort(std::span<int32_t> symbols) const {
  size_t count = symbols.size();
  std::array<Rule, kShortBpeWord> rules;  // rules[i]: of symbols i and i + 1
  for (size_t i = 0; i + 1 < count; ++i) rules[i] = RuleOf(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (rules[i].rank < rules[best].rank) best = i;
    }
    if (rules[best].rank == kNoRank) break;
    symbols[best] = rules[best].merged;
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      rules[i - 1] = rules[i];
    }
    if (best > 0) rules[best - 1] = RuleOf(symbols[best - 1], symbols[best]);
    if (best + 1 < count) rules[best] = RuleOf(symbols[best], symbols[best + 1]);
  }
  return count;
}

// The symbols as a linked list, the pairs that may be merged in a heap. A pair whose symbols were
// merged otherwise since it went in is known by no longer having its rule.
size_t BpeModel::MergeLong(std::span<int32_t> symbols) const {
  struct Candidate {
    uint32_t rank;
    uint32_t left;  // index of the pair's left symbol
    int32_t merged;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, left) > std::tie(other.rank, other.left);
    }
  };
  constexpr int32_t kMergedAway = -1;
  const size_t count = symbols.size();
  std::vector<size_t> next(count);
  std::vector<size_t> previous(count);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](size_t left) {
    if (next[left] == count) return;
    const Rule rule = RuleOf(symbols[left], symbols[next[left]]);
    if (rule.rank == kNoRank) return;
    candidates.push({rule.rank, static_cast<uint32_t>(left), rule.merged});
  };
  for (size_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;  // of the first: never read
  }
  for (size_t i = 0; i < count; ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate candidate = candidates.top();
    candidates.pop();
    const size_t left = candidate.left;
    const size_t right = next[left];
    if (symbols[left] == kMergedAway || right == count) continue;
    if (RuleOf(symbols[left], symbols[right]).merged != candidate.merged) continue;
    symbols[left] = candidate.merged;
    symbols[right] = kMergedAway;
    next[left] = next[right];
    if (next[left] != count) previous[next[left]] = left;
    consider(left);
    if (left != 0) consider(previous[left]);
  }
  const auto end = std::remove(symbols.begin(), symbols.end(), kMergedAway);
  return static_cast<size_t>(end - symbols.begin());
}

}  // namespace hpo::text
