#include "worker/text/tokenizers/families/bpe_files.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/json_reader.h"
#include "common/base/utf8.h"
#include "nlohmann/json.hpp"
#include "worker/text/tokenizers/parts/byte_alphabet.h"
#include "worker/text/tokenizers/parts/utf8.h"
#include "worker/text/tokenizers/pipeline/tokenizer_config.h"

namespace hpo::text {

int32_t IdOf(const TokenIds& ids, absl::string_view token) {
  const auto found = ids.find(token);
  return found == ids.end() ? -1 : found->second;
}

absl::StatusOr<TokenIds> TokenIdsFromJson(const nlohmann::json& json, const std::string& where) {
  if (!json.is_object() || json.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected an object of tokens and ids, got ",
                     json.is_object() ? "an empty one" : DescribeJson(json)));
  }
  TokenIds ids;
  absl::flat_hash_set<int32_t> seen;
  ids.reserve(json.size());
  seen.reserve(json.size());
  for (const auto& [token, id] : json.items()) {
    const bool fits = id.is_number_integer() && id >= 0 && id < kMaxVocabulary;
    if (!fits || !seen.insert(id.get<int32_t>()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": '", token, "': expected an id below ", kMaxVocabulary,
                       " that no other token has, got ", DescribeJson(id)));
    }
    ids.emplace(token, id.get<int32_t>());
  }
  return ids;
}

std::vector<std::string> TokensById(const TokenIds& ids) {
  int32_t last = -1;
  for (const auto& [token, id] : ids) last = std::max(last, id);
  std::vector<std::string> tokens(static_cast<size_t>(last) + 1);
  for (const auto& [token, id] : ids) tokens[static_cast<size_t>(id)] = token;
  return tokens;
}

absl::StatusOr<NamedMerges> ParseMerges(absl::string_view content, const std::string& origin) {
  NamedMerges merges;
  int64_t line_number = 0;
  while (absl::EndsWith(content, "\n") || absl::EndsWith(content, "\r")) content.remove_suffix(1);
  for (absl::string_view line : absl::StrSplit(content, '\n')) {
    ++line_number;
    if (absl::EndsWith(line, "\r")) line.remove_suffix(1);
    if (absl::StartsWith(line, "#version") || content.empty()) continue;
    const size_t blank = line.find(' ');
    const bool two = blank != absl::string_view::npos && blank > 0 && blank + 1 < line.size() &&
                     line.find(' ', blank + 1) == absl::string_view::npos;
    if (!two || FindInvalidUtf8(line) != absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(origin, ":", line_number, ": expected two tokens and a blank between, got ",
                       DescribeJson(nlohmann::json(std::string(line)))));
    }
    merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
  return merges;
}

absl::StatusOr<BpeVocabulary> MakeBpeVocabulary(const TokenIds& ids, const NamedMerges& merges,
                                                BpeVocabulary::Unit unit,
                                                const std::string& where) {
  BpeVocabulary vocabulary;
  vocabulary.unit = unit;
  vocabulary.tokens = TokensById(ids);
  vocabulary.merges.reserve(merges.size());
  for (const auto& [left, right] : merges) {
    const BpeVocabulary::Merge merge = {IdOf(ids, left), IdOf(ids, right),
                                        IdOf(ids, absl::StrCat(left, right)),
                                        static_cast<uint32_t>(vocabulary.merges.size())};
    if (merge.left < 0 || merge.right < 0 || merge.merged < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": merge ", vocabulary.merges.size() + 1, ": expected '", left, "', '", right,
          "' and what they become among the tokens, got at least one that is not"));
    }
    vocabulary.merges.push_back(merge);
  }
  if (unit == BpeVocabulary::Unit::kByte) {
    for (std::string& token : vocabulary.tokens) token = BytesOfToken(token).value_or("");
  }
  return vocabulary;
}

}  // namespace hpo::text
