// Makes the tokenizer that the files of a folder describe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/models/model_spec.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo::text {

// The tokenizer of the model in `folder`. Where there is a tokenizer.json, that decides alone, as
// it does in Hugging Face's library. Else the family is that of tokenizer_config.json's
// tokenizer_class, or of `shape.family`, and its vocabulary files are read.
//   NotFound         a file of the tokenizer is missing; names it
//   InvalidArgument  a file is broken, or does not belong to a model of `shape.vocab_size`; names
//                    file and place
//   Unimplemented    no tokenizer for this family, or a part of tokenizer.json that is not known
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const std::string& folder,
                                                         const ModelShape& shape);

// The same where only files of the tokenizer are: without config.json the family is told by
// tokenizer_config.json, else by the names of the files, and any number of tokens is taken.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizerOfFolder(const std::string& folder);

}  // namespace hpo::text
