// Text to token ids, as the model's vocabulary wants them. One interface for every tokenizer
// family; families are told apart in make_tokenizer.h.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/models/model_spec.h"

namespace hpo::text {

// All that a tokenizer may be read from: what is copied with a model.
inline constexpr const char* kTokenizerFiles[] = {"tokenizer.json",
                                                  "tokenizer_config.json",
                                                  "special_tokens_map.json",
                                                  "added_tokens.json",
                                                  "vocab.txt",
                                                  "vocab.json",
                                                  "merges.txt",
                                                  "spm.model",
                                                  "sentencepiece.bpe.model",
                                                  "tokenizer.model"};

// For Encode's max_length: keep everything.
constexpr int64_t kNoTruncation = std::numeric_limits<int64_t>::max();

// Tokens [begin, end).
struct TokenRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const TokenRange&) const = default;
};

// One row of input. Both vectors are equally long; `type_ids` are as the family wants them: 0 for
// the text and 1 for its pair where it tells them apart, 0 everywhere where it does not (RoBERTa).
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;
  // Where the kept tokens of each of the two lie among the special ones; without a pair its range
  // is empty.
  TokenRange text = {};
  TokenRange pair = {};
  bool operator==(const Encoding&) const = default;
};

// Immutable, so safe to share between threads. Equal input gives equal output on every machine.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // `text`, or `text` and `pair`, with the family's special tokens around them, in at most
  // `max_length` tokens. Any bytes are allowed: what is not UTF-8 is read as U+FFFD.
  // Truncation drops tokens from the ends, of the longer of the two until both are equally long,
  // then of both in turn; special tokens stay. Same rule as Hugging Face's "longest_first".
  // Precondition: max_length >= NumSpecialTokens(pair.has_value()).
  virtual Encoding Encode(absl::string_view text, std::optional<absl::string_view> pair,
                          int64_t max_length) const = 0;

  // How many special tokens Encode adds: the shortest input there is.
  virtual int64_t NumSpecialTokens(bool has_pair) const = 0;

  // Rows of the vocabulary; every id that Encode gives is below it.
  virtual int64_t vocab_size() const = 0;

  virtual int32_t pad_id() const = 0;

  // SHA-256 of the vocabulary and of the settings that change ids (casing and the like).
  virtual const std::string& digest() const = 0;
};

}  // namespace hpo::text
