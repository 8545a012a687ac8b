// Tested by tests/worker/text/tokenizers/pipeline/tokenizer_test.cc.
#include "worker/text/tokenizers/make_tokenizer.h"

#include <filesystem>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "nlohmann/json.hpp"
#include "worker/text/tokenizers/families/byte_bpe_tokenizer.h"
#include "worker/text/tokenizers/families/sentencepiece_tokenizer.h"
#include "worker/text/tokenizers/families/tokenizer_json.h"
#include "worker/text/tokenizers/families/wordpiece.h"
#include "worker/text/tokenizers/pipeline/tokenizer_config.h"

namespace hpo::text {
namespace {

enum class TokenizerFamily {
  kBert,
  kRoberta,
  kGpt2,
  kQwen2,
  kDebertaV2,
  kXlmRoberta,
  kLlama,
  kPlainSentencePiece,
};

struct FamilyNames {
  TokenizerFamily family;
  absl::string_view tokenizer_class;  // in tokenizer_config.json, without the ending "Fast"
  absl::string_view model_type;       // in config.json
};

constexpr FamilyNames kFamilies[] = {
    {TokenizerFamily::kBert, "BertTokenizer", "bert"},
    {TokenizerFamily::kBert, "DistilBertTokenizer", "distilbert"},
    {TokenizerFamily::kBert, "ElectraTokenizer", "electra"},
    {TokenizerFamily::kRoberta, "RobertaTokenizer", "roberta"},
    {TokenizerFamily::kGpt2, "GPT2Tokenizer", "gpt2"},
    {TokenizerFamily::kQwen2, "Qwen2Tokenizer", "qwen2"},
    {TokenizerFamily::kDebertaV2, "DebertaV2Tokenizer", "deberta-v2"},
    {TokenizerFamily::kXlmRoberta, "XLMRobertaTokenizer", "xlm-roberta"},
    {TokenizerFamily::kLlama, "LlamaTokenizer", "llama"},
};

std::optional<TokenizerFamily> FamilyOf(const TokenizerConfig& config,
                                        absl::string_view model_type) {
  for (const FamilyNames& names : kFamilies) {
    if (names.tokenizer_class == config.tokenizer_class) return names.family;
  }
  for (const FamilyNames& names : kFamilies) {
    if (names.model_type == model_type) return names.family;
  }
  return std::nullopt;
}

// Classes that hold any tokenizer.
bool NamesNoFamily(absl::string_view tokenizer_class) {
  return tokenizer_class.empty() || tokenizer_class == "PreTrainedTokenizer" ||
         tokenizer_class == "TokenizersBackend";
}

bool HasFile(const std::string& folder, const char* name) {
  std::error_code error;
  return std::filesystem::exists(folder + "/" + name, error);
}

// RoBERTa's vocabulary holds its special tokens.
TokenizerFamily FamilyOfByteBpe(const std::string& folder) {
  const absl::StatusOr<std::string> vocabulary = ReadFile(folder + "/vocab.json");
  const bool roberta = vocabulary.ok() && absl::StrContains(*vocabulary, "\"<mask>\"");
  return roberta ? TokenizerFamily::kRoberta : TokenizerFamily::kGpt2;
}

std::optional<TokenizerFamily> FamilyOfFiles(const std::string& folder) {
  if (HasFile(folder, "vocab.txt")) return TokenizerFamily::kBert;
  if (HasFile(folder, "vocab.json")) return FamilyOfByteBpe(folder);
  if (HasFile(folder, "spm.model")) return TokenizerFamily::kDebertaV2;
  if (HasFile(folder, "sentencepiece.bpe.model")) return TokenizerFamily::kXlmRoberta;
  if (HasFile(folder, "tokenizer.model")) return TokenizerFamily::kLlama;
  const bool plain = SentencePieceFile(SentencePieceFamily::kPlain, folder).ok();
  return plain ? std::optional(TokenizerFamily::kPlainSentencePiece) : std::nullopt;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Load(TokenizerFamily family, const std::string& folder,
                                                const TokenizerConfig& config, int64_t model_rows) {
  const auto byte_bpe = [&](ByteBpeFamily of) {
    return LoadByteBpeTokenizer(of, folder, config, model_rows);
  };
  const auto sentencepiece = [&](SentencePieceFamily of) {
    return LoadSentencePieceTokenizer(of, folder, config, model_rows);
  };
  switch (family) {
    case TokenizerFamily::kBert:
      return LoadBertTokenizer(folder, config, model_rows);
    case TokenizerFamily::kRoberta:
      return byte_bpe(ByteBpeFamily::kRoberta);
    case TokenizerFamily::kGpt2:
      return byte_bpe(ByteBpeFamily::kGpt2);
    case TokenizerFamily::kQwen2:
      return byte_bpe(ByteBpeFamily::kQwen2);
    case TokenizerFamily::kDebertaV2:
      return sentencepiece(SentencePieceFamily::kDebertaV2);
    case TokenizerFamily::kXlmRoberta:
      return sentencepiece(SentencePieceFamily::kXlmRoberta);
    case TokenizerFamily::kLlama:
      return sentencepiece(SentencePieceFamily::kLlama);
    case TokenizerFamily::kPlainSentencePiece:
      return sentencepiece(SentencePieceFamily::kPlain);
  }
  return absl::InternalError("a family without tokenizer");
}

// The tokenizer.json of `folder`; nullptr where there is none.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizerJson(const std::string& folder,
                                                             const TokenizerConfig& config,
                                                             int64_t model_rows) {
  const std::string path = folder + "/tokenizer.json";
  const absl::StatusOr<std::string> content = ReadFile(path);
  if (absl::IsNotFound(content.status())) return nullptr;
  HPO_RETURN_IF_ERROR(content.status());
  return ParseTokenizerJson(*content, path, config, model_rows);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const std::string& folder,
                                                         const ModelShape& shape) {
  HPO_ASSIGN_OR_RETURN(const TokenizerConfig config, ReadTokenizerConfig(folder));
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> whole,
                       LoadTokenizerJson(folder, config, shape.vocab_size));
  if (whole != nullptr) return whole;
  const std::optional<TokenizerFamily> family = FamilyOf(config, shape.family);
  if (family.has_value()) return Load(*family, folder, config, shape.vocab_size);
  return absl::UnimplementedError(absl::StrCat(
      folder, "/config.json: model_type: expected one whose tokenizer hpo supports, got '",
      shape.family, "'"));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizerOfFolder(const std::string& folder) {
  HPO_ASSIGN_OR_RETURN(const TokenizerConfig config, ReadTokenizerConfig(folder));
  HPO_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> whole,
                       LoadTokenizerJson(folder, config, /*model_rows=*/0));
  if (whole != nullptr) return whole;
  std::optional<TokenizerFamily> family = FamilyOf(config, /*model_type=*/"");
  if (!family.has_value() && !NamesNoFamily(config.tokenizer_class)) {
    return absl::UnimplementedError(absl::StrCat(
        folder, "/tokenizer_config.json: tokenizer_class: expected one that hpo supports, got '",
        config.tokenizer_class, "'"));
  }
  if (!family.has_value()) family = FamilyOfFiles(folder);
  if (family.has_value()) return Load(*family, folder, config, /*model_rows=*/0);
  return absl::NotFoundError(absl::StrCat(
      folder,
      ": expected tokenizer.json, vocab.txt, vocab.json and merges.txt, or one *.model, got "
      "none of them"));
}

}  // namespace hpo::text
