// Byte-level BPE tokenizers from vocab.json and merges.txt: RoBERTa, GPT-2, Qwen2.
// Source: Radford et al. 2019; ids equal Hugging Face's tokenizers of these models.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"
#include "worker/text/tokenizers/pipeline/tokenizer_config.h"

namespace hpo::text {

enum class ByteBpeFamily {
  kRoberta,  // <s> text </s>, <s> text </s></s> pair </s>; every type id 0
  kGpt2,     // the text alone; add_bos_token puts <|endoftext|> before it
  kQwen2,    // the text alone, in Unicode's form C
};

// The tokenizer of `folder`, for a model with so many rows of embeddings (0: not known).
// Codes: see MakeTokenizer.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadByteBpeTokenizer(ByteBpeFamily family,
                                                                const std::string& folder,
                                                                const TokenizerConfig& config,
                                                                int64_t model_rows);

}  // namespace hpo::text
