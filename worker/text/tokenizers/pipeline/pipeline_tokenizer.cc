// Tested by tests/worker/text/tokenizers/pipeline/tokenizer_test.cc.
#include "worker/text/tokenizers/pipeline/pipeline_tokenizer.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/text/tokenizers/parts/utf8.h"
#include "worker/text/tokenizers/pipeline/truncation.h"

namespace hpo::text {
namespace {

// Tokens per byte of ordinary text are fewer than this.
constexpr size_t kBytesPerToken = 4;

// The tokens that are looked for before (after) the text is normalised.
std::vector<AddedToken> TokensFor(const TokenizerParts& parts, bool normalized) {
  std::vector<AddedToken> tokens;
  for (AddedToken token : parts.added_tokens) {
    if (token.normalized != normalized) continue;
    if (normalized) token.content = Normalize(parts.normalizer, token.content);
    if (!token.content.empty()) tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace

PipelineTokenizer::PipelineTokenizer(TokenizerParts parts)
    : parts_(std::move(parts)),
      raw_tokens_(TokensFor(parts_, /*normalized=*/false)),
      normalized_tokens_(TokensFor(parts_, /*normalized=*/true)) {}

int64_t PipelineTokenizer::NumSpecialTokens(bool has_pair) const {
  const InputTemplate& pieces = has_pair ? parts_.pair : parts_.single;
  return std::count_if(pieces.begin(), pieces.end(), [](const TemplatePiece& piece) {
    return piece.kind == TemplatePiece::Kind::kToken;
  });
}

Encoding PipelineTokenizer::Encode(absl::string_view text, std::optional<absl::string_view> pair,
                                   int64_t max_length) const {
  const bool has_pair = pair.has_value();
  HPO_CHECK(max_length >= NumSpecialTokens(has_pair));
  const std::vector<int32_t> text_ids = Pieces(text);
  const std::vector<int32_t> pair_ids = has_pair ? Pieces(*pair) : std::vector<int32_t>();
  const KeptTokens kept = TruncateLongestFirst(
      {static_cast<int64_t>(text_ids.size()), static_cast<int64_t>(pair_ids.size())},
      max_length - NumSpecialTokens(has_pair));
  Encoding encoding;
  std::vector<int32_t>& ids = encoding.ids;
  ids.reserve(static_cast<size_t>(kept.text + kept.pair + NumSpecialTokens(has_pair)));
  for (const TemplatePiece& piece : has_pair ? parts_.pair : parts_.single) {
    const auto begin = static_cast<int64_t>(ids.size());
    switch (piece.kind) {
      case TemplatePiece::Kind::kText:
        ids.insert(ids.end(), text_ids.begin(), text_ids.begin() + kept.text);
        encoding.text = {.begin = begin, .end = begin + kept.text};
        break;
      case TemplatePiece::Kind::kPair:
        ids.insert(ids.end(), pair_ids.begin(), pair_ids.begin() + kept.pair);
        encoding.pair = {.begin = begin, .end = begin + kept.pair};
        break;
      case TemplatePiece::Kind::kToken:
        ids.push_back(piece.token_id);
        break;
    }
    encoding.type_ids.resize(ids.size(), piece.type_id);
  }
  return encoding;
}

std::vector<int32_t> PipelineTokenizer::Pieces(absl::string_view text) const {
  std::string valid;
  if (FindInvalidUtf8(text) != absl::string_view::npos) {
    valid = ReplaceInvalidUtf8(text);
    text = valid;
  }
  std::vector<int32_t> ids;
  ids.reserve(text.size() / kBytesPerToken + 1);
  raw_tokens_.Cut(
      text, /*at_start=*/true,
      [&](absl::string_view plain, bool at_start) { AppendPlain(plain, at_start, ids); },
      [&](int32_t id) { ids.push_back(id); });
  return ids;
}

void PipelineTokenizer::AppendPlain(absl::string_view text, bool at_start,
                                    std::vector<int32_t>& ids) const {
  std::string normalized;
  if (!parts_.normalizer.empty()) {
    normalized = Normalize(parts_.normalizer, text);
    text = normalized;
  }
  const auto append_word = [&](absl::string_view word) { parts_.model->Append(word, ids); };
  normalized_tokens_.Cut(
      text, at_start,
      [&](absl::string_view plain, bool plain_at_start) {
        SplitWords(parts_.splitter, plain, plain_at_start, append_word);
      },
      [&](int32_t id) { ids.push_back(id); });
}

}  // namespace hpo::text
