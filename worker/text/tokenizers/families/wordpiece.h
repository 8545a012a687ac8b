// WordPiece, the tokenizer of BERT and its relatives.
// Source: Devlin et al. 2018; ids equal Hugging Face's BertTokenizerFast (tests/golden/tokenizers).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/text/tokenizers/parts/normalizer.h"
#include "worker/text/tokenizers/parts/subword_model.h"
#include "worker/text/tokenizers/parts/vocab_trie.h"
#include "worker/text/tokenizers/parts/vocabulary.h"
#include "worker/text/tokenizers/pipeline/pipeline_tokenizer.h"
#include "worker/text/tokenizers/pipeline/tokenizer_config.h"

namespace hpo::text {

struct WordPieceVocabulary {
  std::vector<std::string> tokens;  // by id, distinct; empty: no such id
  int32_t unknown_id = 0;
  std::string continuation_prefix = "##";
  int64_t max_word_characters = 100;
};

// Words are cut greedily into the longest pieces of the vocabulary, pieces after the first written
// with the prefix before them; a word that cannot be cut, or is too long, is the unknown token.
class WordPieceModel final : public SubwordModel {
 public:
  explicit WordPieceModel(const WordPieceVocabulary& vocabulary);

  void Append(absl::string_view word, std::vector<int32_t>& ids) const override;

 private:
  int32_t unknown_id_;
  size_t max_word_characters_;
  VocabTrie trie_;
  VocabTrie::Node continuation_;  // where pieces after a word's first one start
};

// BERT's tokenizer: [CLS] text [SEP], or [CLS] text [SEP] pair [SEP] with type 1 from the pair on.
// The vocabulary's special tokens, written out in the text exactly, stand for themselves.
// `vocabulary` as ParseVocabulary gives it; `added`: tokens with ids after those of the vocabulary.
std::unique_ptr<PipelineTokenizer> MakeBertTokenizer(const Vocabulary& vocabulary,
                                                     BertNormalization normalization,
                                                     const std::vector<AddedToken>& added = {});

// do_lower_case (default true), strip_accents (default: as do_lower_case), tokenize_chinese_chars
// (default true).
BertNormalization BertNormalizationOf(const TokenizerConfig& config);

// The tokenizer of `folder`: its vocab.txt and the tokens that `config` adds, for a model with so
// many rows (0: not known). Codes: see MakeTokenizer.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadBertTokenizer(const std::string& folder,
                                                             const TokenizerConfig& config,
                                                             int64_t model_rows);

}  // namespace hpo::text
