// The vocabulary files of byte-level BPE, and what is shared with tokenizer.json: token ids by name
// and merges by name become a BpeVocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"
#include "worker/text/tokenizers/parts/bpe.h"

namespace hpo::text {

using TokenIds = absl::flat_hash_map<std::string, int32_t>;
using NamedMerges = std::vector<std::pair<std::string, std::string>>;

// -1 when `ids` lacks `token`.
int32_t IdOf(const TokenIds& ids, absl::string_view token);

// {"token": id, ...}, a vocab.json or the vocab of a tokenizer.json.
//   InvalidArgument  not an object, an id that is no integer below kMaxVocabulary or comes twice,
//                    no token at all; names `where` and the token
absl::StatusOr<TokenIds> TokenIdsFromJson(const nlohmann::json& json, const std::string& where);

// The tokens by id, written as in `ids`; empty where there is no such id.
std::vector<std::string> TokensById(const TokenIds& ids);

// merges.txt: a line "left right" for each merge, best first; a line beginning "#version" is
// skipped, and empty lines at the end.
//   InvalidArgument  a line that is not two tokens; names `origin` and line
absl::StatusOr<NamedMerges> ParseMerges(absl::string_view content, const std::string& origin);

// Tokens and merges of the result; the rest of it is left at its defaults.
//   InvalidArgument  a merge whose tokens, or what they become, `ids` lacks; names `where` and it
absl::StatusOr<BpeVocabulary> MakeBpeVocabulary(const TokenIds& ids, const NamedMerges& merges,
                                                BpeVocabulary::Unit unit, const std::string& where);

}  // namespace hpo::text
