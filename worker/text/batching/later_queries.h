// Questions that come up while others are answered, as rows for the model. How many they are is
// known only then, so what may run together is bounded by what has run. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/text/batching/batcher.h"
#include "worker/text/batching/encoded_dataset.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo::text {

// The pieces of queries that ran so far, by their shapes.
class QueryRoom {
 public:
  // A piece of so many rows, padding ones too, of so many tokens each.
  void Add(int64_t rows, int64_t tokens);

  // Of the longest piece; 0: none ran.
  int64_t most_tokens() const { return rows_.empty() ? 0 : rows_.rbegin()->first; }

  // The most rows of a piece that had so many tokens or more. tokens <= most_tokens().
  int64_t RowsOf(int64_t tokens) const;

 private:
  std::map<int64_t, int64_t> rows_;  // by tokens
};

struct LaterQuestion {
  std::string words;
  absl::string_view text;
};

struct LaterQueries {
  EncodedDataset queries;         // without labels
  std::vector<TokenRange> texts;  // of each, where in its row the kept tokens of its text are
};

// max_length: at which a question with its text is cut off. More than the tokenizer's special
// tokens of a pair. one_type: the model knows no second token type.
LaterQueries EncodeLater(std::span<const LaterQuestion> questions, const Tokenizer& tokenizer,
                         int64_t max_length, bool one_type);

// All queries, longest first, in pieces of which each is covered by one of `room`: no more rows,
// padding included no more tokens. An evaluation that runs them frees each piece before the next,
// so it never needs more memory than the estimate knew of before the trial, by the file's own
// queries alone. No query is longer than room.most_tokens().
std::vector<BatchRows> PiecesWithin(const QueryRoom& room, const EncodedDataset& queries,
                                    int64_t max_positions);

}  // namespace hpo::text
