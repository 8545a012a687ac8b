// A vocab.txt: one token per line, its id the line number from 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo::text {

struct Vocabulary {
  std::vector<std::string> tokens;
  std::string digest;  // SHA-256 of the file

  // -1 when the vocabulary lacks it.
  int32_t IdOf(absl::string_view token) const;
};

// Parses a vocabulary of BERT's kind for a model with `model_rows` rows of embeddings (0: not
// known, any number of tokens is taken), of which the last `num_added` belong to tokens that other
// files add. Fewer tokens than rows are taken only where the rows were rounded up to a multiple of
// 8, by less than 128, as is done for speed. `origin` is what errors begin with.
//   InvalidArgument  an empty or repeated token, invalid UTF-8, no [PAD], [UNK], [CLS] or [SEP],
//                    another number of tokens than the model has rows; names file and line
absl::StatusOr<Vocabulary> ParseVocabulary(absl::string_view content, const std::string& origin,
                                           int64_t model_rows, int64_t num_added = 0);

}  // namespace hpo::text
