// Tokenizers from a SentencePiece model: DeBERTa-v2/v3, XLM-RoBERTa, Llama, or the model alone.
// Source: Kudo and Richardson 2018, arXiv:1808.06226; pieces equal SentencePiece's, special tokens
// are those of Hugging Face's tokenizers of these models.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"
#include "worker/text/tokenizers/pipeline/tokenizer_config.h"

namespace hpo::text {

enum class SentencePieceFamily {
  // spm.model, [MASK] after its pieces; [CLS] text [SEP], [CLS] text [SEP] pair [SEP] with type 1
  // from the pair on.
  kDebertaV2,
  // sentencepiece.bpe.model; fairseq's ids: <s> <pad> </s> <unk>, the other pieces one higher than
  // in the file, <mask> last; <s> text </s>, <s> text </s></s> pair </s>; every type id 0.
  kXlmRoberta,
  // tokenizer.model; <s> text, <s> text <s> pair; add_bos_token and add_eos_token decide.
  kLlama,
  // Any *.model: SentencePiece's own ids, nothing added.
  kPlain,
};

// The file of the family's model in `folder`.
//   NotFound         kPlain only: there is not exactly one *.model
absl::StatusOr<std::string> SentencePieceFile(SentencePieceFamily family,
                                              const std::string& folder);

// The tokenizer of `folder`, for a model with so many rows of embeddings (0: not known).
// Codes: see MakeTokenizer.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadSentencePieceTokenizer(SentencePieceFamily family,
                                                                      const std::string& folder,
                                                                      const TokenizerConfig& config,
                                                                      int64_t model_rows);

}  // namespace hpo::text
