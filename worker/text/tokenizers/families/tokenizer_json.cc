#include "worker/text/tokenizers/families/tokenizer_json.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/sha256.h"
#include "nlohmann/json.hpp"
#include "worker/text/tokenizers/families/tokenizer_json_model.h"
#include "worker/text/tokenizers/families/tokenizer_json_parts.h"
#include "worker/text/tokenizers/families/tokenizer_json_splits.h"
#include "worker/text/tokenizers/pipeline/special_tokens.h"

namespace hpo::text {
namespace {

// What padding is written as where nothing says it; the end of text serves where there is none.
constexpr const char* kPadTokens[] = {"[PAD]", "<pad>", "<|endoftext|>", "<|end_of_text|>", "</s>"};

// A token that the vocabulary has keeps its id there.
absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(const nlohmann::json& json,
                                                        const TokenIds& ids,
                                                        const std::string& where) {
  std::vector<AddedToken> tokens;
  if (json.is_null()) return tokens;
  if (!json.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected an array, got ", DescribeJson(json)));
  }
  for (const nlohmann::json& element : json) {
    const std::string path = absl::StrCat(where, "[", tokens.size(), "]");
    HPO_ASSIGN_OR_RETURN(AddedToken token, AddedTokenFromJson(element, path));
    int64_t id = -1;
    JsonReader reader(element, path);
    reader.Required("id", id);
    HPO_RETURN_IF_ERROR(reader.status());
    if (id < 0 || id >= kMaxVocabulary) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ".id: expected 0 to ", kMaxVocabulary - 1, ", got ", id));
    }
    const int32_t known = IdOf(ids, token.content);
    token.id = known >= 0 ? known : static_cast<int32_t>(id);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

int64_t VocabularySize(const TokenIds& ids, const TokenizerParts& parts) {
  int64_t last = -1;
  for (const auto& [token, id] : ids) last = std::max(last, int64_t{id});
  for (const AddedToken& token : parts.added_tokens) last = std::max(last, int64_t{token.id});
  for (const InputTemplate* pieces : {&parts.single, &parts.pair}) {
    for (const TemplatePiece& piece : *pieces) last = std::max(last, int64_t{piece.token_id});
  }
  return last + 1;
}

int32_t PadIdOf(const nlohmann::json& json, const TokenizerConfig& config, const TokenIds& ids,
                const TokenizerParts& parts) {
  std::vector<std::string> names(std::begin(kPadTokens), std::end(kPadTokens));
  names.insert(names.begin(), config.SpecialToken("pad_token", ""));
  for (const std::string& name : names) {
    const int32_t added = AddedTokenId(parts, name);
    if (added >= 0) return added;
    if (const int32_t id = IdOf(ids, name); id >= 0) return id;
  }
  const nlohmann::json& padding = MemberOrNull(json, "padding");
  const nlohmann::json& id = padding.is_object() ? MemberOrNull(padding, "pad_id") : padding;
  const bool known = id.is_number_integer() && id >= 0 && id < parts.vocab_size;
  return known ? id.get<int32_t>() : 0;
}

// BertNormalizer and BertPreTokenizer together cut text in one pass.
void JoinBertSteps(const PreTokenizer& pre_tokenizer, TokenizerParts& parts) {
  const bool looks_into_text =
      std::any_of(parts.added_tokens.begin(), parts.added_tokens.end(),
                  [](const AddedToken& token) { return token.normalized; });
  if (!pre_tokenizer.bert || looks_into_text || parts.normalizer.empty()) return;
  auto* const bert = std::get_if<BertText>(&parts.normalizer.back());
  if (bert == nullptr) return;
  BertNormalizer cutting = bert->normalizer;
  parts.normalizer.back().emplace<BertNormalizer>(std::move(cutting));
  parts.splitter.clear();
  parts.splitter.emplace_back(SplitAtBlanks{});
}

}  // namespace

absl::StatusOr<std::unique_ptr<PipelineTokenizer>> ParseTokenizerJson(absl::string_view content,
                                                                      const std::string& origin,
                                                                      const TokenizerConfig& config,
                                                                      int64_t model_rows) {
  const absl::StatusOr<nlohmann::json> json = ParseJson(content);
  if (!json.ok()) return Annotate(json.status(), origin);
  if (!json->is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": expected an object, got ", DescribeJson(*json)));
  }
  const auto member = [&](const char* key) -> const nlohmann::json& {
    return MemberOrNull(*json, key);
  };
  const auto where = [&](const char* key) { return absl::StrCat(origin, ": ", key); };
  TokenizerParts parts;
  HPO_RETURN_IF_ERROR(ReadNormalizer(member("normalizer"), where("normalizer"), parts.normalizer));
  HPO_ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer,
                       ReadPreTokenizer(member("pre_tokenizer"), where("pre_tokenizer")));
  HPO_ASSIGN_OR_RETURN(ModelPart model,
                       ReadModel(member("model"), pre_tokenizer.byte_level, where("model")));
  HPO_ASSIGN_OR_RETURN(parts.added_tokens,
                       ReadAddedTokens(member("added_tokens"), model.ids, where("added_tokens")));
  HPO_ASSIGN_OR_RETURN(Templates templates,
                       ReadPostProcessor(member("post_processor"), where("post_processor")));
  parts.splitter = pre_tokenizer.steps;
  JoinBertSteps(pre_tokenizer, parts);
  parts.model = std::move(model.model);
  parts.single = std::move(templates.single);
  parts.pair = std::move(templates.pair);
  parts.vocab_size = VocabularySize(model.ids, parts);
  HPO_RETURN_IF_ERROR(CheckVocabularySize(parts.vocab_size, model_rows, origin));
  parts.pad_id = PadIdOf(*json, config, model.ids, parts);
  const std::string files[] = {Sha256Hex(content)};
  parts.digest = DigestOfParts("tokenizer.json", files, parts);
  return std::make_unique<PipelineTokenizer>(std::move(parts));
}

}  // namespace hpo::text
