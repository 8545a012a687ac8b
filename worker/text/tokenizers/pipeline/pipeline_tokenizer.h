// A tokenizer put together from parts, as every family is: tokens written out in the text are set
// apart, the rest is normalised, cut into words and the words into tokens; special tokens go
// around.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/text/tokenizers/parts/subword_model.h"
#include "worker/text/tokenizers/parts/text_normalizer.h"
#include "worker/text/tokenizers/parts/word_splitter.h"
#include "worker/text/tokenizers/pipeline/added_tokens.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo::text {

// What stands where in an input: the text, its pair, or a special token.
struct TemplatePiece {
  enum class Kind { kText, kPair, kToken };
  Kind kind = Kind::kText;
  int32_t type_id = 0;
  int32_t token_id = 0;  // of a kToken
  bool operator==(const TemplatePiece&) const = default;
};
using InputTemplate = std::vector<TemplatePiece>;

struct TokenizerParts {
  std::vector<AddedToken> added_tokens;
  std::vector<NormalizerStep> normalizer;
  std::vector<SplitStep> splitter;
  std::unique_ptr<const SubwordModel> model;
  InputTemplate single;  // one kText
  InputTemplate pair;    // one kText and one kPair
  int64_t vocab_size = 0;
  int32_t pad_id = 0;
  std::string digest;
};

class PipelineTokenizer final : public Tokenizer {
 public:
  // Every id in `parts` is below its vocab_size.
  explicit PipelineTokenizer(TokenizerParts parts);

  Encoding Encode(absl::string_view text, std::optional<absl::string_view> pair,
                  int64_t max_length) const override;
  int64_t NumSpecialTokens(bool has_pair) const override;
  int64_t vocab_size() const override { return parts_.vocab_size; }
  int32_t pad_id() const override { return parts_.pad_id; }
  const std::string& digest() const override { return parts_.digest; }

  // The tokens of `text` alone: no special tokens around them, nothing truncated.
  std::vector<int32_t> Pieces(absl::string_view text) const;

 private:
  void AppendPlain(absl::string_view text, bool at_start, std::vector<int32_t>& ids) const;

  TokenizerParts parts_;
  AddedTokenFinder raw_tokens_;
  AddedTokenFinder normalized_tokens_;
};

}  // namespace hpo::text
