#include "worker/text/tokenizers/families/wordpiece.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "common/files/read_file.h"
#include "common/files/sha256.h"
#include "worker/text/tokenizers/parts/utf8.h"
#include "worker/text/tokenizers/pipeline/special_tokens.h"

namespace hpo::text {
namespace {

std::string DigestOf(const Vocabulary& vocabulary, const BertNormalization& normalization) {
  return Sha256Hex(absl::StrCat("wordpiece lowercase=", normalization.lowercase,
                                " strip_accents=", normalization.strip_accents,
                                " split_cjk=", normalization.split_cjk, " ", vocabulary.digest));
}

}  // namespace

WordPieceModel::WordPieceModel(const WordPieceVocabulary& vocabulary)
    : unknown_id_(vocabulary.unknown_id),
      max_word_characters_(static_cast<size_t>(vocabulary.max_word_characters)),
      trie_(vocabulary.tokens),
      continuation_(trie_.Descend(vocabulary.continuation_prefix)) {}

void WordPieceModel::Append(absl::string_view word, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  if (word.size() > max_word_characters_ && CountCharacters(word) > max_word_characters_) {
    ids.push_back(unknown_id_);
    return;
  }
  VocabTrie::Node start = VocabTrie::kRoot;
  while (!word.empty()) {
    const VocabTrie::Match match = trie_.LongestMatch(start, word);
    if (match.id < 0) {
      ids.resize(before);
      ids.push_back(unknown_id_);
      return;
    }
    ids.push_back(match.id);
    word.remove_prefix(match.length);
    start = continuation_;
  }
}

std::unique_ptr<PipelineTokenizer> MakeBertTokenizer(const Vocabulary& vocabulary,
                                                     BertNormalization normalization,
                                                     const std::vector<AddedToken>& added) {
  TokenizerParts parts;
  for (const char* text : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    const int32_t id = vocabulary.IdOf(text);
    if (id >= 0) parts.added_tokens.push_back({.content = text, .id = id, .special = true});
  }
  parts.normalizer.emplace_back(BertNormalizer(normalization));
  parts.splitter.emplace_back(SplitAtBlanks{});
  parts.model = std::make_unique<WordPieceModel>(
      WordPieceVocabulary{.tokens = vocabulary.tokens, .unknown_id = vocabulary.IdOf("[UNK]")});
  const int32_t cls = vocabulary.IdOf("[CLS]");
  const int32_t sep = vocabulary.IdOf("[SEP]");
  parts.single = {{TemplatePiece::Kind::kToken, 0, cls},
                  {TemplatePiece::Kind::kText},
                  {TemplatePiece::Kind::kToken, 0, sep}};
  parts.pair = parts.single;
  parts.pair.push_back({TemplatePiece::Kind::kPair, 1});
  parts.pair.push_back({TemplatePiece::Kind::kToken, 1, sep});
  parts.vocab_size = static_cast<int64_t>(vocabulary.tokens.size());
  parts.pad_id = vocabulary.IdOf("[PAD]");
  parts.digest = DigestOf(vocabulary, normalization);
  if (added.empty()) return std::make_unique<PipelineTokenizer>(std::move(parts));
  for (const AddedToken& token : added) {
    parts.added_tokens.push_back(token);
    parts.vocab_size = std::max(parts.vocab_size, int64_t{token.id} + 1);
  }
  parts.digest = DigestOfParts("wordpiece", std::vector<std::string>{parts.digest}, parts);
  return std::make_unique<PipelineTokenizer>(std::move(parts));
}

BertNormalization BertNormalizationOf(const TokenizerConfig& config) {
  BertNormalization normalization;
  normalization.lowercase = config.do_lower_case.value_or(true);
  normalization.strip_accents = config.strip_accents.value_or(normalization.lowercase);
  normalization.split_cjk = config.tokenize_chinese_chars.value_or(true);
  return normalization;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadBertTokenizer(const std::string& folder,
                                                             const TokenizerConfig& config,
                                                             int64_t model_rows) {
  const std::string path = folder + "/vocab.txt";
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  // The special tokens of the vocabulary are among those that `config` lists.
  const auto num_lines = std::count(text.begin(), text.end(), '\n') + !absl::EndsWith(text, "\n");
  std::vector<AddedToken> added;
  int64_t num_added = 0;
  for (const AddedToken& token : config.added_tokens) {
    if (token.id < num_lines) continue;
    added.push_back(token);
    num_added = std::max(num_added, token.id + 1 - num_lines);
  }
  HPO_ASSIGN_OR_RETURN(const Vocabulary vocabulary,
                       ParseVocabulary(text, path, model_rows, num_added));
  return MakeBertTokenizer(vocabulary, BertNormalizationOf(config), added);
}

}  // namespace hpo::text
