// Byte-pair encoding: a word's symbols are merged, the best-ranked pair first, until none is left
// that may be. Byte-level as in GPT-2, or over characters as in Llama-2.
// Source: Sennrich et al. 2016, arXiv:1508.07909; ids equal Hugging Face's tokenizers
// (tests/golden/tokenizers). A word of n symbols takes O(n log n).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/text/tokenizers/parts/subword_model.h"
#include "worker/text/tokenizers/parts/vocab_trie.h"

namespace hpo::text {

// Ids of the tokens "<0x00>" to "<0xFF>"; -1 where a vocabulary lacks one.
using ByteTokens = std::array<int32_t, 256>;

inline ByteTokens NoByteTokens() {
  ByteTokens none;
  none.fill(-1);
  return none;
}

struct BpeVocabulary {
  enum class Unit { kByte, kCharacter };
  struct Merge {
    int32_t left = 0;
    int32_t right = 0;
    int32_t merged = 0;
    uint32_t rank = 0;  // lower comes first; of equal ones the leftmost in the word
  };

  Unit unit = Unit::kByte;
  // By id; with bytes as units what the token stands for, not how the vocabulary writes it. Empty:
  // not reached by merging (special tokens, ids that are not used).
  std::vector<std::string> tokens;
  std::vector<Merge> merges;  // of a pair that comes twice the later counts

  // A unit without token: its bytes as byte tokens where all are there, else the unknown token
  // (one for a run of such units, if fused), else nothing.
  ByteTokens byte_tokens = NoByteTokens();
  int32_t unknown_id = -1;  // -1: none
  bool fuse_unknown = false;

  bool ignore_merges = false;  // a word that is a token is that token, however it would be merged
  // Ids of tokens taken whole wherever they stand and never merged (SentencePiece's user-defined).
  std::vector<int32_t> frozen;
};

class BpeModel final : public SubwordModel {
 public:
  // Ids in `vocabulary` are indices of its tokens.
  explicit BpeModel(const BpeVocabulary& vocabulary);

  void Append(absl::string_view word, std::vector<int32_t>& ids) const override;

 private:
  void AppendPart(absl::string_view part, std::vector<int32_t>& ids) const;

  struct Rule {
    uint32_t rank = kNoRank;
    int32_t merged = -1;
  };
  static constexpr uint32_t kNoRank = 0xFFFFFFFF;

  Rule RuleOf(int32_t left, int32_t right) const;
  void AppendUnits(absl::string_view word, std::vector<int32_t>& ids) const;
  // Whether the last unit was unknown is passed on from call to call in `after_unknown`.
  void AppendUnitWithoutToken(absl::string_view unit, std::vector<int32_t>& ids,
                              bool& after_unknown) const;
  void AppendMerged(absl::string_view word, std::vector<int32_t>& ids) const;
  // Both merge in place and return how many symbols are left.
  size_t MergeShort(std::span<int32_t> symbols) const;
  size_t MergeLong(std::span<int32_t> symbols) const;

  BpeVocabulary::Unit unit_;
  ByteTokens byte_tokens_;
  bool has_byte_tokens_;
  int32_t unknown_id_;
  bool fuse_unknown_;
  // No token reaches over the end of a word to the blank symbol behind it, so that a text's words,
  // of which most are known whole, are merged one by one.
  bool parts_at_blanks_;
  ByteTokens unit_of_byte_;  // units of one byte
  absl::flat_hash_map<std::string, int32_t> unit_of_character_;
  absl::flat_hash_map<uint64_t, Rule> rules_;
  std::vector<int32_t> frozen_ids_;  // by index in the trie
  VocabTrie frozen_;
  // Words whose tokens are known without merging: those that merge to one token.
  absl::flat_hash_map<std::string, int32_t> whole_words_;
  size_t longest_whole_word_ = 0;
};

}  // namespace hpo::text
