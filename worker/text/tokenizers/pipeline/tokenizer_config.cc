#include "worker/text/tokenizers/pipeline/tokenizer_config.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "nlohmann/json.hpp"

namespace hpo::text {
namespace {

constexpr const char* kSpecialTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                          "pad_token", "cls_token", "mask_token"};

absl::StatusOr<nlohmann::json> ParseObject(absl::string_view json, const std::string& origin) {
  absl::StatusOr<nlohmann::json> object = ParseJson(json);
  if (!object.ok()) return Annotate(object.status(), origin);
  if (!object->is_object()) return UnexpectedJson(origin, "a JSON object", *object);
  return object;
}

// Sets `value` from a boolean key; a missing key or null leaves it absent.
absl::Status ReadFlag(const nlohmann::json& object, const char* key, const std::string& origin,
                      std::optional<bool>& value) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return absl::OkStatus();
  if (!found->is_boolean()) {
    return UnexpectedJson(absl::StrCat(origin, ": ", key), "true or false", *found);
  }
  value = found->get<bool>();
  return absl::OkStatus();
}

// A special token is a string, or an object with its content.
absl::Status ReadSpecialToken(const nlohmann::json& object, const char* key,
                              const std::string& origin, TokenizerConfig& config) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return absl::OkStatus();
  const nlohmann::json* text = &*found;
  if (found->is_object() && found->contains("content")) text = &found->at("content");
  if (!text->is_string()) {
    return UnexpectedJson(absl::StrCat(origin, ": ", key), "a string or an object with content",
                          *found);
  }
  config.special_tokens[key] = text->get<std::string>();
  return absl::OkStatus();
}

absl::Status ReadAddedTokens(const nlohmann::json& object, const std::string& origin,
                             std::vector<AddedToken>& tokens) {
  const auto found = object.find("added_tokens_decoder");
  if (found == object.end() || found->is_null()) return absl::OkStatus();
  const std::string where = absl::StrCat(origin, ": added_tokens_decoder");
  if (!found->is_object()) return UnexpectedJson(where, "an object", *found);
  for (const auto& [key, value] : found->items()) {
    HPO_ASSIGN_OR_RETURN(AddedToken token,
                         AddedTokenFromJson(value, absl::StrCat(where, ".", key)));
    int64_t id = -1;
    if (!absl::SimpleAtoi(key, &id) || id < 0 || id >= kMaxVocabulary) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": expected ids from 0 to ",
                                                     kMaxVocabulary - 1, ", got '", key, "'"));
    }
    token.id = static_cast<int32_t>(id);
    tokens.push_back(std::move(token));
  }
  std::sort(tokens.begin(), tokens.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return absl::OkStatus();
}

// {"content": id}; tokens that are known keep their flags.
absl::Status ReadAddedTokensFile(const std::string& path, std::vector<AddedToken>& tokens) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  HPO_RETURN_IF_ERROR(text.status());
  HPO_ASSIGN_OR_RETURN(const nlohmann::json object, ParseObject(*text, path));
  for (const auto& [content, id] : object.items()) {
    if (!id.is_number_integer() || id < 0 || id >= kMaxVocabulary || content.empty()) {
      return UnexpectedJson(absl::StrCat(path, ": ", content), "an id of a token", id);
    }
    const bool known =
        std::any_of(tokens.begin(), tokens.end(),
                    [&text = content](const AddedToken& token) { return token.content == text; });
    if (!known) tokens.push_back({.content = content, .id = id.get<int32_t>(), .special = true});
  }
  return absl::OkStatus();
}

}  // namespace

std::string TokenizerConfig::SpecialToken(const std::string& name,
                                          const std::string& otherwise) const {
  const auto found = special_tokens.find(name);
  return found == special_tokens.end() ? otherwise : found->second;
}

absl::StatusOr<AddedToken> AddedTokenFromJson(const nlohmann::json& json,
                                              const std::string& where) {
  if (!json.is_object()) return UnexpectedJson(where, "an object", json);
  AddedToken token;
  JsonReader reader(json, where);
  reader.Required("content", token.content);
  reader.Optional("single_word", token.single_word);
  reader.Optional("lstrip", token.lstrip);
  reader.Optional("rstrip", token.rstrip);
  reader.Optional("normalized", token.normalized);
  reader.Optional("special", token.special);
  HPO_RETURN_IF_ERROR(reader.status());
  if (token.content.empty()) return UnexpectedJson(where, "a token", json.at("content"));
  return token;
}

absl::StatusOr<TokenizerConfig> ParseTokenizerConfig(absl::string_view json,
                                                     const std::string& origin) {
  HPO_ASSIGN_OR_RETURN(const nlohmann::json object, ParseObject(json, origin));
  TokenizerConfig config;
  const std::pair<const char*, std::optional<bool>*> flags[] = {
      {"do_lower_case", &config.do_lower_case},
      {"strip_accents", &config.strip_accents},
      {"tokenize_chinese_chars", &config.tokenize_chinese_chars},
      {"add_prefix_space", &config.add_prefix_space},
      {"add_bos_token", &config.add_bos_token},
      {"add_eos_token", &config.add_eos_token},
  };
  for (const auto& [key, flag] : flags) {
    HPO_RETURN_IF_ERROR(ReadFlag(object, key, origin, *flag));
  }
  JsonReader reader(object, origin);
  reader.Optional("tokenizer_class", config.tokenizer_class);
  HPO_RETURN_IF_ERROR(reader.status());
  config.tokenizer_class = std::string(absl::StripSuffix(config.tokenizer_class, "Fast"));
  for (const char* key : kSpecialTokens) {
    HPO_RETURN_IF_ERROR(ReadSpecialToken(object, key, origin, config));
  }
  HPO_RETURN_IF_ERROR(ReadAddedTokens(object, origin, config.added_tokens));
  return config;
}

absl::StatusOr<TokenizerConfig> ReadTokenizerConfig(const std::string& folder) {
  const std::string path = folder + "/tokenizer_config.json";
  const absl::StatusOr<std::string> text = ReadFile(path);
  TokenizerConfig config;
  if (text.ok()) {
    HPO_ASSIGN_OR_RETURN(config, ParseTokenizerConfig(*text, path));
  } else if (!absl::IsNotFound(text.status())) {
    return text.status();
  }
  HPO_RETURN_IF_ERROR(ReadAddedTokensFile(folder + "/added_tokens.json", config.added_tokens));
  return config;
}

}  // namespace hpo::text
