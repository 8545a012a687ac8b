#include "worker/text/tokenizers/pipeline/special_tokens.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/files/sha256.h"

namespace hpo::text {
namespace {

constexpr int64_t kMaxUnusedRows = 1024;

std::string Written(const InputTemplate& pieces) {
  std::string text;
  for (const TemplatePiece& piece : pieces) {
    absl::StrAppend(&text, " ", static_cast<int>(piece.kind), ":", piece.type_id, ":",
                    piece.token_id);
  }
  return text;
}

}  // namespace

void AddSpecialTokens(std::span<const FamilyToken> family, const TokenizerConfig& config,
                      absl::FunctionRef<int32_t(absl::string_view)> id_of, TokenizerParts& parts) {
  for (const AddedToken& token : config.added_tokens) {
    parts.added_tokens.push_back(token);
    parts.vocab_size = std::max(parts.vocab_size, int64_t{token.id} + 1);
  }
  for (const FamilyToken& token : family) {
    const std::string content = config.SpecialToken(token.name, token.content);
    if (content.empty() || AddedTokenId(parts, content) >= 0) continue;
    int32_t id = id_of(content);
    if (id < 0) id = static_cast<int32_t>(parts.vocab_size++);
    parts.added_tokens.push_back(
        {.content = content, .id = id, .lstrip = token.lstrip, .special = true});
  }
}

int32_t AddedTokenId(const TokenizerParts& parts, absl::string_view content) {
  for (const AddedToken& token : parts.added_tokens) {
    if (token.content == content) return token.id;
  }
  return -1;
}

TemplatePiece TokenPiece(int32_t id, int32_t type_id) {
  return {TemplatePiece::Kind::kToken, type_id, id};
}
TemplatePiece TextPiece() { return {TemplatePiece::Kind::kText}; }
TemplatePiece PairPiece(int32_t type_id) { return {TemplatePiece::Kind::kPair, type_id}; }

void SetRobertaTemplates(const TokenizerConfig& config, TokenizerParts& parts) {
  const auto token = [&](const char* name, const char* content) {
    return TokenPiece(AddedTokenId(parts, config.SpecialToken(name, content)));
  };
  const TemplatePiece cls = token("cls_token", "<s>");
  const TemplatePiece sep = token("sep_token", "</s>");
  parts.single = {cls, TextPiece(), sep};
  parts.pair = {cls, TextPiece(), sep, sep, PairPiece(0), sep};
}

std::string DigestOfParts(absl::string_view kind, std::span<const std::string> files,
                          const TokenizerParts& parts) {
  std::string text = absl::StrCat(kind, "\npad ", parts.pad_id, "\nsingle", Written(parts.single),
                                  "\npair", Written(parts.pair));
  for (const AddedToken& token : parts.added_tokens) {
    absl::StrAppend(&text, "\n", token.id, " ", token.single_word, token.lstrip, token.rstrip,
                    token.normalized, " ", token.content);
  }
  for (const std::string& file : files) absl::StrAppend(&text, "\n", file);
  return Sha256Hex(text);
}

absl::Status CheckVocabularySize(int64_t vocab_size, int64_t model_rows,
                                 const std::string& origin) {
  if (model_rows == 0) return absl::OkStatus();
  if (vocab_size <= model_rows && model_rows - vocab_size < kMaxUnusedRows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      origin, ": expected ", model_rows, " tokens (the model's vocab_size), got ", vocab_size,
      "; take the vocabulary that belongs to the model, or resize the model to its "
      "tokenizer: model.resize_token_embeddings(len(tokenizer))"));
}

}  // namespace hpo::text
