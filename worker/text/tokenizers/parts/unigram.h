// Unigram language model: of all ways to cut a word into pieces the one whose scores add up to the
// most.
// Source: Kudo 2018, arXiv:1804.10959; the search is the one-pass Viterbi of SentencePiece and of
// Hugging Face's tokenizers, ties and rounding included, so that ids agree with either.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/text/tokenizers/parts/bpe.h"
#include "worker/text/tokenizers/parts/subword_model.h"
#include "worker/text/tokenizers/parts/vocab_trie.h"

namespace hpo::text {

// How much less than the worst piece an unknown character is worth.
inline constexpr double kUnknownPenalty = 10.0;

struct UnigramVocabulary {
  // SentencePiece keeps the score of a path in single precision, Hugging Face in double: on long
  // words and equal pieces the results differ.
  enum class Precision { kSingle, kDouble };
  struct Piece {
    std::string text;    // distinct, not empty
    double score = 0.0;  // a float's value where precision is single
    int32_t id = 0;
  };

  Precision precision = Precision::kSingle;
  std::vector<Piece> pieces;
  // Score of a character that no piece holds; such characters in a run are one unknown token.
  double unknown_score = 0.0;
  int32_t unknown_id = 0;
  // Instead of the unknown token, where every byte of the run has one.
  ByteTokens byte_tokens = NoByteTokens();
};

class UnigramModel final : public SubwordModel {
 public:
  explicit UnigramModel(const UnigramVocabulary& vocabulary);

  // O(bytes x longest piece), and memory of 12 to 16 times the word.
  void Append(absl::string_view word, std::vector<int32_t>& ids) const override;

 private:
  template <typename Score>
  void AppendBest(absl::string_view word, std::vector<int32_t>& ids) const;
  void AppendUnknown(absl::string_view run, std::vector<int32_t>& ids) const;

  struct Scored {
    double score;
    int32_t id;
  };

  UnigramVocabulary::Precision precision_;
  double unknown_score_;
  int32_t unknown_id_;
  ByteTokens byte_tokens_;
  std::vector<Scored> pieces_;  // by index in the trie
  VocabTrie trie_;
};

}  // namespace hpo::text
