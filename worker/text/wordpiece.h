// WordPiece, the tokenizer of BERT and its relatives.
// Source: Devlin et al. 2018; ids equal Hugging Face's BertTokenizerFast (tests/golden/tokenizers).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/text/normalizer.h"
#include "worker/text/tokenizer.h"
#include "worker/text/vocab_trie.h"
#include "worker/text/vocabulary.h"

namespace hpo {

// Words are cut greedily into the longest pieces of the vocabulary, pieces after the first written
// with a leading "##"; a word that cannot be cut, or of more than 100 characters, is [UNK]. The
// vocabulary's special tokens, written out in the text exactly, stand for themselves.
class WordPieceTokenizer final : public Tokenizer {
 public:
  // `vocabulary` as ParseVocabulary gives it.
  WordPieceTokenizer(const Vocabulary& vocabulary, BertNormalization normalization);

  // [CLS] text [SEP], or [CLS] text [SEP] pair [SEP].
  Encoding Encode(absl::string_view text, std::optional<absl::string_view> pair,
                  int64_t max_length) const override;
  int64_t NumSpecialTokens(bool has_pair) const override { return has_pair ? 3 : 2; }
  int64_t vocab_size() const override { return vocab_size_; }
  int32_t pad_id() const override { return pad_id_; }
  const std::string& digest() const override { return digest_; }

  // The pieces of `text` alone: no special tokens added, nothing truncated.
  std::vector<int32_t> Pieces(absl::string_view text) const;

 private:
  struct SpecialToken {
    std::string text;
    int32_t id;
  };

  const SpecialToken* SpecialTokenAt(absl::string_view text) const;
  void AppendPieces(absl::string_view text, std::vector<int32_t>& ids) const;
  void AppendWord(absl::string_view word, std::vector<int32_t>& ids) const;

  int64_t vocab_size_;
  int32_t pad_id_;
  int32_t unknown_id_;
  int32_t cls_id_;
  int32_t sep_id_;
  std::vector<SpecialToken> special_tokens_;
  std::string digest_;
  BertNormalizer normalizer_;
  VocabTrie trie_;
  VocabTrie::Node continuation_;  // where pieces after a word's first one start
};

// Reads a tokenizer_config.json: do_lower_case (default true), strip_accents (default, also for
// null: as do_lower_case), tokenize_chinese_chars (default true). Other keys are ignored.
//   InvalidArgument  not a JSON object, or one of the keys is not a boolean; names it and `origin`
absl::StatusOr<BertNormalization> ParseTokenizerConfig(absl::string_view json,
                                                       const std::string& origin);

// The tokenizer of `folder`: vocab.txt, and tokenizer_config.json where there is one.
// Codes: see MakeTokenizer.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadWordPiece(const std::string& folder,
                                                         int64_t model_rows);

}  // namespace hpo
