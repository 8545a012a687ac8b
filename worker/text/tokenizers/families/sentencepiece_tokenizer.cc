#include "worker/text/tokenizers/families/sentencepiece_tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/sha256.h"
#include "worker/text/tokenizers/families/sentencepiece_subwords.h"
#include "worker/text/tokenizers/pipeline/pipeline_tokenizer.h"
#include "worker/text/tokenizers/pipeline/special_tokens.h"

namespace hpo::text {
namespace {

namespace fs = std::filesystem;

constexpr FamilyToken kDebertaTokens[] = {
    {"pad_token", "[PAD]"}, {"cls_token", "[CLS]"}, {"sep_token", "[SEP]"},  {"unk_token", "[UNK]"},
    {"bos_token", "[CLS]"}, {"eos_token", "[SEP]"}, {"mask_token", "[MASK]"}};
constexpr FamilyToken kLlamaTokens[] = {
    {"unk_token", "<unk>"}, {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"pad_token", ""}};

// XLM-RoBERTa's ids differ from those of its file, which begins <unk> <s> </s>.
constexpr std::pair<absl::string_view, int32_t> kFairseqIds[] = {
    {"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}};
constexpr int32_t kFairseqOffset = 1;

std::span<const FamilyToken> TokensOf(SentencePieceFamily family) {
  switch (family) {
    case SentencePieceFamily::kDebertaV2:
      return kDebertaTokens;
    case SentencePieceFamily::kXlmRoberta:
      return kRobertaTokens;
    case SentencePieceFamily::kLlama:
      return kLlamaTokens;
    case SentencePieceFamily::kPlain:
      return {};
  }
  return {};
}

// The id of piece `piece` of the file as the family numbers it.
int32_t FamilyId(SentencePieceFamily family, const SentencePieceModel& model, int32_t piece) {
  if (family != SentencePieceFamily::kXlmRoberta) return piece;
  for (const auto& [text, id] : kFairseqIds) {
    if (model.pieces[static_cast<size_t>(piece)].text == text) return id;
  }
  return piece + kFairseqOffset;
}

void SetLlamaTemplates(const TokenizerConfig& config, TokenizerParts& parts) {
  const int32_t bos = AddedTokenId(parts, config.SpecialToken("bos_token", "<s>"));
  const int32_t eos = AddedTokenId(parts, config.SpecialToken("eos_token", "</s>"));
  const auto append = [&](InputTemplate& pieces, TemplatePiece middle) {
    if (config.add_bos_token.value_or(true)) pieces.push_back(TokenPiece(bos, middle.type_id));
    pieces.push_back(middle);
    if (config.add_eos_token.value_or(false)) pieces.push_back(TokenPiece(eos, middle.type_id));
  };
  append(parts.single, TextPiece());
  parts.pair = parts.single;
  append(parts.pair, PairPiece(1));
}

void SetTemplates(SentencePieceFamily family, const TokenizerConfig& config,
                  TokenizerParts& parts) {
  const auto token = [&](const char* name, const char* content, int32_t type_id = 0) {
    return TokenPiece(AddedTokenId(parts, config.SpecialToken(name, content)), type_id);
  };
  switch (family) {
    case SentencePieceFamily::kDebertaV2:
      parts.single = {token("cls_token", "[CLS]"), TextPiece(), token("sep_token", "[SEP]")};
      parts.pair = parts.single;
      parts.pair.push_back(PairPiece(1));
      parts.pair.push_back(token("sep_token", "[SEP]", 1));
      return;
    case SentencePieceFamily::kXlmRoberta:
      return SetRobertaTemplates(config, parts);
    case SentencePieceFamily::kLlama:
      return SetLlamaTemplates(config, parts);
    case SentencePieceFamily::kPlain:
      parts.single = {TextPiece()};
      parts.pair = {TextPiece(), PairPiece(1)};
      return;
  }
}

// The padding token, the end of text where there is none.
int32_t PadIdOf(SentencePieceFamily family, const SentencePieceModel& model,
                const TokenizerConfig& config, const TokenizerParts& parts) {
  const std::string contents[] = {config.SpecialToken("pad_token", "[PAD]"), "<pad>", "</s>"};
  for (const std::string& content : contents) {
    if (const int32_t added = AddedTokenId(parts, content); added >= 0) return added;
    if (const int32_t piece = model.IdOf(content); piece >= 0) {
      return FamilyId(family, model, piece);
    }
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::string> SentencePieceFile(SentencePieceFamily family,
                                              const std::string& folder) {
  switch (family) {
    case SentencePieceFamily::kDebertaV2:
      return folder + "/spm.model";
    case SentencePieceFamily::kXlmRoberta:
      return folder + "/sentencepiece.bpe.model";
    case SentencePieceFamily::kLlama:
      return folder + "/tokenizer.model";
    case SentencePieceFamily::kPlain:
      break;
  }
  std::vector<std::string> models;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".model") models.push_back(entry.path().string());
  }
  if (models.size() == 1) return models.front();
  return absl::NotFoundError(
      absl::StrCat(folder, ": expected one SentencePiece model (*.model), got ", models.size()));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadSentencePieceTokenizer(SentencePieceFamily family,
                                                                      const std::string& folder,
                                                                      const TokenizerConfig& config,
                                                                      int64_t model_rows) {
  HPO_ASSIGN_OR_RETURN(const std::string path, SentencePieceFile(family, folder));
  HPO_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  HPO_ASSIGN_OR_RETURN(const SentencePieceModel model, ParseSentencePieceModel(content, path));
  HPO_ASSIGN_OR_RETURN(SentencePieceNormalizer normalizer, NormalizerOf(model, path));
  const auto id_of = [&](int32_t piece) { return FamilyId(family, model, piece); };
  TokenizerParts parts;
  for (size_t piece = 0; piece < model.pieces.size(); ++piece) {
    parts.vocab_size = std::max(parts.vocab_size, int64_t{id_of(static_cast<int32_t>(piece))} + 1);
  }
  const auto id_of_token = [&](absl::string_view token) -> int32_t {
    if (family == SentencePieceFamily::kXlmRoberta && token == "<pad>") return 1;
    const int32_t piece = model.IdOf(token);
    return piece < 0 ? piece : id_of(piece);
  };
  AddSpecialTokens(TokensOf(family), config, id_of_token, parts);
  HPO_RETURN_IF_ERROR(CheckVocabularySize(parts.vocab_size, model_rows, path));
  const bool lowercase = config.do_lower_case.value_or(false);
  if (lowercase) parts.normalizer.emplace_back(Lowercase{});
  parts.normalizer.emplace_back(std::move(normalizer));
  parts.model = SubwordsOf(model, id_of);
  SetTemplates(family, config, parts);
  parts.pad_id = PadIdOf(family, model, config, parts);
  const std::string files[] = {Sha256Hex(content)};
  parts.digest = DigestOfParts(
      absl::StrCat("sentencepiece ", static_cast<int>(family), " lowercase=", lowercase), files,
      parts);
  return std::make_unique<PipelineTokenizer>(std::move(parts));
}

}  // namespace hpo::text
