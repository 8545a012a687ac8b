#include "worker/text/tokenizers/families/byte_bpe_tokenizer.h"

#include <span>
#include <utility>
#include <vector>

#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/sha256.h"
#include "nlohmann/json.hpp"
#include "worker/text/tokenizers/families/bpe_files.h"
#include "worker/text/tokenizers/pipeline/pipeline_tokenizer.h"
#include "worker/text/tokenizers/pipeline/special_tokens.h"

namespace hpo::text {
namespace {

constexpr FamilyToken kEndOfText[] = {{"unk_token", "<|endoftext|>"},
                                      {"bos_token", "<|endoftext|>"},
                                      {"eos_token", "<|endoftext|>"},
                                      {"pad_token", ""}};
constexpr FamilyToken kQwen2Tokens[] = {{"eos_token", "<|endoftext|>"},
                                        {"pad_token", "<|endoftext|>"}};

std::span<const FamilyToken> TokensOf(ByteBpeFamily family) {
  switch (family) {
    case ByteBpeFamily::kRoberta:
      return kRobertaTokens;
    case ByteBpeFamily::kGpt2:
      return kEndOfText;
    case ByteBpeFamily::kQwen2:
      return kQwen2Tokens;
  }
  return {};
}

void SetTemplates(ByteBpeFamily family, const TokenizerConfig& config, TokenizerParts& parts) {
  const auto token = [&](const char* name, const char* content) {
    return TokenPiece(AddedTokenId(parts, config.SpecialToken(name, content)));
  };
  if (family == ByteBpeFamily::kRoberta) return SetRobertaTemplates(config, parts);
  parts.single = {TextPiece()};
  parts.pair = {TextPiece(), PairPiece(1)};
  if (family == ByteBpeFamily::kGpt2 && config.add_bos_token.value_or(false)) {
    TemplatePiece bos = token("bos_token", "<|endoftext|>");
    parts.single.insert(parts.single.begin(), bos);
    parts.pair.insert(parts.pair.begin(), bos);
    bos.type_id = 1;
    parts.pair.insert(parts.pair.end() - 1, bos);
  }
}

int32_t PadIdOf(const TokenizerConfig& config, const TokenizerParts& parts) {
  for (const auto& [name, content] :
       {std::pair("pad_token", "<pad>"), std::pair("eos_token", "<|endoftext|>")}) {
    const int32_t id = AddedTokenId(parts, config.SpecialToken(name, content));
    if (id >= 0) return id;
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadByteBpeTokenizer(ByteBpeFamily family,
                                                                const std::string& folder,
                                                                const TokenizerConfig& config,
                                                                int64_t model_rows) {
  const std::string vocab_path = folder + "/vocab.json";
  const std::string merges_path = folder + "/merges.txt";
  HPO_ASSIGN_OR_RETURN(const std::string vocab_text, ReadFile(vocab_path));
  HPO_ASSIGN_OR_RETURN(const std::string merges_text, ReadFile(merges_path));
  const absl::StatusOr<nlohmann::json> json = ParseJson(vocab_text);
  if (!json.ok()) return Annotate(json.status(), vocab_path);
  HPO_ASSIGN_OR_RETURN(const TokenIds ids, TokenIdsFromJson(*json, vocab_path));
  HPO_ASSIGN_OR_RETURN(const NamedMerges merges, ParseMerges(merges_text, merges_path));
  HPO_ASSIGN_OR_RETURN(const BpeVocabulary vocabulary,
                       MakeBpeVocabulary(ids, merges, BpeVocabulary::Unit::kByte, merges_path));
  TokenizerParts parts;
  parts.vocab_size = static_cast<int64_t>(vocabulary.tokens.size());
  AddSpecialTokens(
      TokensOf(family), config, [&](absl::string_view token) { return IdOf(ids, token); }, parts);
  HPO_RETURN_IF_ERROR(CheckVocabularySize(parts.vocab_size, model_rows, vocab_path));
  const bool qwen2 = family == ByteBpeFamily::kQwen2;
  const bool prefix = config.add_prefix_space.value_or(false);
  if (qwen2) parts.normalizer.emplace_back(NormalForm::kNfc);
  if (prefix) parts.splitter.emplace_back(PrefixBlank{});
  parts.splitter.emplace_back(SplitAtPattern{qwen2 ? SplitPattern::kQwen2 : SplitPattern::kGpt2});
  parts.model = std::make_unique<BpeModel>(vocabulary);
  SetTemplates(family, config, parts);
  parts.pad_id = PadIdOf(config, parts);
  const std::string files[] = {Sha256Hex(vocab_text), Sha256Hex(merges_text)};
  parts.digest = DigestOfParts(
      absl::StrCat("byte-level bpe ", static_cast<int>(family), " prefix=", prefix), files, parts);
  return std::make_unique<PipelineTokenizer>(std::move(parts));
}

}  // namespace hpo::text
