#include "worker/text/tokenizers/parts/vocabulary.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "common/files/sha256.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace hpo::text {
namespace {

constexpr int64_t kMaxPaddingRows = 128;
constexpr int64_t kPaddingRowMultiple = 8;

bool RowsMatch(int64_t tokens, int64_t model_rows) {
  if (model_rows == 0 || tokens == model_rows) return true;
  return tokens < model_rows && model_rows - tokens < kMaxPaddingRows &&
         model_rows % kPaddingRowMultiple == 0;
}

absl::StatusOr<std::vector<std::string>> ReadTokens(absl::string_view content,
                                                    const std::string& origin) {
  std::vector<std::string> tokens;
  absl::flat_hash_map<absl::string_view, size_t> first_line;
  size_t line = 0;
  if (absl::EndsWith(content, "\n")) content.remove_suffix(1);
  for (absl::string_view token : absl::StrSplit(content, '\n')) {
    ++line;
    if (absl::EndsWith(token, "\r")) token.remove_suffix(1);
    const std::string where = absl::StrCat(origin, ":", line, ": ");
    if (token.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(where, "expected a token, got an empty line"));
    }
    if (FindInvalidUtf8(token) != absl::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrCat(where, "expected UTF-8, got other bytes"));
    }
    const auto [entry, inserted] = first_line.emplace(token, line);
    if (!inserted) {
      return absl::InvalidArgumentError(absl::StrCat(where, "expected distinct tokens, got '",
                                                     token, "' again (first on line ",
                                                     entry->second, ")"));
    }
    tokens.emplace_back(token);
  }
  return tokens;
}

}  // namespace

int32_t Vocabulary::IdOf(absl::string_view token) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (token == tokens[i]) return static_cast<int32_t>(i);
  }
  return -1;
}

absl::StatusOr<Vocabulary> ParseVocabulary(absl::string_view content, const std::string& origin,
                                           int64_t model_rows, int64_t num_added) {
  Vocabulary vocabulary;
  HPO_ASSIGN_OR_RETURN(vocabulary.tokens, ReadTokens(content, origin));
  const int64_t num_tokens = static_cast<int64_t>(vocabulary.tokens.size());
  if (!RowsMatch(num_tokens + num_added, model_rows)) {
    const std::string added = num_added > 0 ? absl::StrCat(" and ", num_added, " added ones") : "";
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ":", num_tokens, ": expected ", model_rows,
                     " tokens (the model's vocab_size), got ", num_tokens, added,
                     "; take the vocabulary that belongs to the model, or resize the model to its "
                     "tokenizer: model.resize_token_embeddings(len(tokenizer))"));
  }
  for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) {
    if (vocabulary.IdOf(special) < 0) {
      return absl::InvalidArgumentError(absl::StrCat(origin, ":", num_tokens, ": expected a line ",
                                                     special, ", got none in the whole file"));
    }
  }
  vocabulary.digest = Sha256Hex(content);
  return vocabulary;
}

}  // namespace hpo::text
