// tokenizer_config.json: which tokenizer a folder holds, and settings that its vocabulary lacks.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"
#include "worker/text/tokenizers/pipeline/added_tokens.h"

namespace hpo::text {

// What is absent or null in the file is absent here.
struct TokenizerConfig {
  std::string tokenizer_class;  // without the ending "Fast"; empty: not said
  std::optional<bool> do_lower_case;
  std::optional<bool> strip_accents;
  std::optional<bool> tokenize_chinese_chars;
  std::optional<bool> add_prefix_space;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  // "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token" and
  // how they are written.
  std::map<std::string, std::string> special_tokens;
  std::vector<AddedToken> added_tokens;  // added_tokens_decoder

  // How special token `name` is written, or `otherwise`.
  std::string SpecialToken(const std::string& name, const std::string& otherwise) const;
};

// Keys that are not listed above are ignored. `origin` is what errors begin with.
//   InvalidArgument  not a JSON object, or one of the keys is of another type; names it
absl::StatusOr<TokenizerConfig> ParseTokenizerConfig(absl::string_view json,
                                                     const std::string& origin);

// The tokenizer_config.json of `folder` (all absent where there is none) and the ids that its
// added_tokens.json gives. Codes of ParseTokenizerConfig, and of ReadFile but for NotFound.
absl::StatusOr<TokenizerConfig> ReadTokenizerConfig(const std::string& folder);

// An added token as tokenizer.json and added_tokens_decoder write it, but for its id.
//   InvalidArgument  names what is wrong, beginning with `where`
absl::StatusOr<AddedToken> AddedTokenFromJson(const nlohmann::json& json, const std::string& where);

// No real vocabulary has ids from this on; memory is bounded by it.
constexpr int64_t kMaxVocabulary = int64_t{1} << 21;

}  // namespace hpo::text
