// The special tokens of a family: which there are, their ids, where they stand around the text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "worker/text/tokenizers/pipeline/pipeline_tokenizer.h"
#include "worker/text/tokenizers/pipeline/tokenizer_config.h"

namespace hpo::text {

// A special token that every tokenizer of a family has.
struct FamilyToken {
  const char* name;     // in tokenizer_config.json: "bos_token"
  const char* content;  // where that says nothing
  bool lstrip = false;
};

// RoBERTa's and XLM-RoBERTa's.
inline constexpr FamilyToken kRobertaTokens[] = {{"bos_token", "<s>"},
                                                 {"pad_token", "<pad>"},
                                                 {"eos_token", "</s>"},
                                                 {"unk_token", "<unk>"},
                                                 {"cls_token", "<s>"},
                                                 {"sep_token", "</s>"},
                                                 {"mask_token", "<mask>", /*lstrip=*/true}};

// Puts into `parts.added_tokens` those that `config` lists with their ids, then those of the family
// that are missing: with the id that id_of(content) gives or, where that is negative, the next free
// one. Raises parts.vocab_size above all of them.
void AddSpecialTokens(std::span<const FamilyToken> family, const TokenizerConfig& config,
                      absl::FunctionRef<int32_t(absl::string_view)> id_of, TokenizerParts& parts);

// The id of an added token; -1 when there is none of that content.
int32_t AddedTokenId(const TokenizerParts& parts, absl::string_view content);

// Pieces of templates.
TemplatePiece TokenPiece(int32_t id, int32_t type_id = 0);
TemplatePiece TextPiece();
TemplatePiece PairPiece(int32_t type_id);

// "<s> text </s>" and "<s> text </s></s> pair </s>", all of type 0.
void SetRobertaTemplates(const TokenizerConfig& config, TokenizerParts& parts);

// A digest of all that decides ids: `kind` names the family and its settings, `files` are digests
// of vocabularies; added tokens and templates are taken from `parts`.
std::string DigestOfParts(absl::string_view kind, std::span<const std::string> files,
                          const TokenizerParts& parts);

// Whether a vocabulary is that of a model with `model_rows` rows of embeddings (0: not known): not
// larger, and smaller by less than 1024, since rows are added for speed and for tokens to come.
//   InvalidArgument  it is not; names `origin` and both numbers
absl::Status CheckVocabularySize(int64_t vocab_size, int64_t model_rows, const std::string& origin);

}  // namespace hpo::text
