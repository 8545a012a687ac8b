// Hugging Face's tokenizer.json: a whole tokenizer in one file, of which this library knows the
// parts that the families here are made of.
//
//   normalizer      NFC NFD NFKC NFKD Lowercase StripAccents Strip Replace Prepend Precompiled
//                   BertNormalizer, Sequence of them
//   pre_tokenizer   ByteLevel Split Metaspace BertPreTokenizer Whitespace WhitespaceSplit
//                   Punctuation Digits CharDelimiterSplit, Sequence of them
//   model           WordPiece, BPE (over bytes or characters), Unigram
//   post_processor  TemplateProcessing BertProcessing RobertaProcessing ByteLevel, Sequence of them
//   added_tokens    with their flags
//
// Regular expressions are known by how they are written (split_pattern.h). The members truncation,
// padding (but for its pad_id) and decoder do not matter here.
// Source: Hugging Face's tokenizers; ids equal its version 0.23 (tests/golden/tokenizers).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/text/tokenizers/pipeline/pipeline_tokenizer.h"
#include "worker/text/tokenizers/pipeline/tokenizer_config.h"

namespace hpo::text {

// The tokenizer that `content` describes, for a model with so many rows of embeddings (0: not
// known). Of `config` only pad_token is used: the file decides all else. `origin` is what errors
// begin with.
//   InvalidArgument  not JSON, a member missing or of another type, a merge of tokens that the
//                    vocabulary lacks, too many or too few tokens for the model; names the member
//   Unimplemented    a part that is not listed above, or an option of one; names it
absl::StatusOr<std::unique_ptr<PipelineTokenizer>> ParseTokenizerJson(absl::string_view content,
                                                                      const std::string& origin,
                                                                      const TokenizerConfig& config,
                                                                      int64_t model_rows);

}  // namespace hpo::text
