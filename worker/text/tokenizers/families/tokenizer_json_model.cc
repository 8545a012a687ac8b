// Tested by tests/worker/text/tokenizers/families/tokenizer_json_parts_test.cc.
#include "worker/text/tokenizers/families/tokenizer_json_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "worker/text/tokenizers/families/tokenizer_json_parts.h"
#include "worker/text/tokenizers/families/wordpiece.h"
#include "worker/text/tokenizers/parts/unigram.h"
#include "worker/text/tokenizers/pipeline/special_tokens.h"
#include "worker/text/tokenizers/pipeline/tokenizer_config.h"

namespace hpo::text {
namespace {

// Files written before models had a type are told by their members.
absl::StatusOr<std::string> ModelType(const nlohmann::json& json, const std::string& where) {
  if (!json.is_object()) return UnexpectedJson(where, "an object", json);
  if (json.contains("type")) return PartType(json, where);
  if (json.contains("merges")) return "BPE";
  return MemberOrNull(json, "vocab").is_array() ? "Unigram" : "WordPiece";
}

ByteTokens ByteTokensOf(const TokenIds& ids) {
  ByteTokens tokens = NoByteTokens();
  for (size_t byte = 0; byte < tokens.size(); ++byte) {
    tokens[byte] = IdOf(ids, absl::StrFormat("<0x%02X>", byte));
  }
  return tokens;
}

// The id of the token that member `key` names; -1 where it is absent or null.
absl::StatusOr<int32_t> NamedTokenId(const nlohmann::json& json, const char* key,
                                     const TokenIds& ids, const std::string& where) {
  const nlohmann::json& name = MemberOrNull(json, key);
  if (name.is_null()) return -1;
  const int32_t id = name.is_string() ? IdOf(ids, name.get_ref<const std::string&>()) : -1;
  if (id < 0) {
    return UnexpectedJson(absl::StrCat(where, ".", key), "a token of the vocabulary", name);
  }
  return id;
}

// Merges are written "left right", or as arrays of two.
absl::StatusOr<NamedMerges> ReadMerges(const nlohmann::json& json, const std::string& where) {
  if (!json.is_array()) return UnexpectedJson(where, "an array", json);
  NamedMerges merges;
  merges.reserve(json.size());
  for (const nlohmann::json& merge : json) {
    std::vector<std::string> tokens;
    if (merge.is_string()) {
      tokens = absl::StrSplit(merge.get_ref<const std::string&>(), ' ');
    } else if (merge.is_array()) {
      for (const nlohmann::json& token : merge) {
        if (token.is_string()) tokens.push_back(token.get<std::string>());
      }
    }
    if (tokens.size() != 2) {
      return UnexpectedJson(absl::StrCat(where, "[", merges.size(), "]"), "two tokens", merge);
    }
    merges.emplace_back(std::move(tokens[0]), std::move(tokens[1]));
  }
  return merges;
}

// Options that none of the families here uses.
absl::Status CheckBpeOptions(const nlohmann::json& json, const std::string& where) {
  const nlohmann::json& dropout = MemberOrNull(json, "dropout");
  if (!dropout.is_null() && dropout != 0.0) {
    return UnknownPart(where + ".dropout", "none", DescribeJson(dropout));
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const nlohmann::json& affix = MemberOrNull(json, key);
    if (affix.is_null() || affix == "") continue;
    return UnknownPart(absl::StrCat(where, ".", key), "none", DescribeJson(affix));
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelPart> ReadBpe(const nlohmann::json& json, bool byte_level,
                                  const std::string& where) {
  HPO_RETURN_IF_ERROR(CheckBpeOptions(json, where));
  bool byte_fallback = false;
  bool fuse_unknown = false;
  bool ignore_merges = false;
  JsonReader reader(json, where);
  reader.Optional("byte_fallback", byte_fallback);
  reader.Optional("fuse_unk", fuse_unknown);
  reader.Optional("ignore_merges", ignore_merges);
  HPO_RETURN_IF_ERROR(reader.status());
  ModelPart part;
  HPO_ASSIGN_OR_RETURN(part.ids, TokenIdsFromJson(MemberOrNull(json, "vocab"), where + ".vocab"));
  HPO_ASSIGN_OR_RETURN(const NamedMerges merges,
                       ReadMerges(MemberOrNull(json, "merges"), where + ".merges"));
  const auto unit = byte_level ? BpeVocabulary::Unit::kByte : BpeVocabulary::Unit::kCharacter;
  HPO_ASSIGN_OR_RETURN(BpeVocabulary vocabulary,
                       MakeBpeVocabulary(part.ids, merges, unit, where + ".merges"));
  HPO_ASSIGN_OR_RETURN(vocabulary.unknown_id, NamedTokenId(json, "unk_token", part.ids, where));
  if (byte_fallback) vocabulary.byte_tokens = ByteTokensOf(part.ids);
  vocabulary.fuse_unknown = fuse_unknown;
  vocabulary.ignore_merges = ignore_merges;
  part.model = std::make_unique<BpeModel>(vocabulary);
  return part;
}

absl::StatusOr<ModelPart> ReadWordPiece(const nlohmann::json& json, const std::string& where) {
  ModelPart part;
  HPO_ASSIGN_OR_RETURN(part.ids, TokenIdsFromJson(MemberOrNull(json, "vocab"), where + ".vocab"));
  WordPieceVocabulary vocabulary;
  vocabulary.tokens = TokensById(part.ids);
  JsonReader reader(json, where);
  reader.Optional("continuing_subword_prefix", vocabulary.continuation_prefix);
  reader.Optional("max_input_chars_per_word", vocabulary.max_word_characters);
  HPO_RETURN_IF_ERROR(reader.status());
  if (vocabulary.max_word_characters < 0) {
    return UnexpectedJson(where + ".max_input_chars_per_word", "0 or more",
                          json.at("max_input_chars_per_word"));
  }
  HPO_ASSIGN_OR_RETURN(vocabulary.unknown_id, NamedTokenId(json, "unk_token", part.ids, where));
  if (vocabulary.unknown_id < 0) {
    return UnexpectedJson(where + ".unk_token", "a token of the vocabulary", nullptr);
  }
  part.model = std::make_unique<WordPieceModel>(vocabulary);
  return part;
}

// [["piece", score], ...]; the id is the place. Of a piece that comes twice the last counts.
absl::Status ReadPieces(const nlohmann::json& json, const std::string& where,
                        UnigramVocabulary& vocabulary, TokenIds& ids) {
  if (!json.is_array() || json.empty() || json.size() >= static_cast<size_t>(kMaxVocabulary)) {
    return UnexpectedJson(where, absl::StrCat("an array of fewer than ", kMaxVocabulary, " pieces"),
                          json);
  }
  double worst = std::numeric_limits<double>::infinity();
  std::vector<double> scores;
  scores.reserve(json.size());
  for (const nlohmann::json& piece : json) {
    const bool valid = piece.is_array() && piece.size() == 2 && piece[0].is_string() &&
                       piece[1].is_number() && std::isfinite(piece[1].get<double>());
    if (!valid) {
      return UnexpectedJson(absl::StrCat(where, "[", scores.size(), "]"), "a piece and its score",
                            piece);
    }
    ids[piece[0].get<std::string>()] = static_cast<int32_t>(scores.size());
    scores.push_back(piece[1].get<double>());
    worst = std::min(worst, scores.back());
  }
  for (const auto& [text, id] : ids) {
    if (text.empty()) continue;
    vocabulary.pieces.push_back({text, scores[static_cast<size_t>(id)], id});
  }
  vocabulary.unknown_score = worst - kUnknownPenalty;
  return absl::OkStatus();
}

absl::StatusOr<ModelPart> ReadUnigram(const nlohmann::json& json, const std::string& where) {
  ModelPart part;
  UnigramVocabulary vocabulary;
  vocabulary.precision = UnigramVocabulary::Precision::kDouble;
  const nlohmann::json& pieces = MemberOrNull(json, "vocab");
  HPO_RETURN_IF_ERROR(ReadPieces(pieces, where + ".vocab", vocabulary, part.ids));
  int64_t unknown_id = -1;
  bool byte_fallback = false;
  JsonReader reader(json, where);
  reader.Required("unk_id", unknown_id);
  reader.Optional("byte_fallback", byte_fallback);
  HPO_RETURN_IF_ERROR(reader.status());
  if (unknown_id < 0 || unknown_id >= static_cast<int64_t>(pieces.size())) {
    return UnexpectedJson(where + ".unk_id", absl::StrCat("an id below ", pieces.size()),
                          json.at("unk_id"));
  }
  vocabulary.unknown_id = static_cast<int32_t>(unknown_id);
  if (byte_fallback) vocabulary.byte_tokens = ByteTokensOf(part.ids);
  part.model = std::make_unique<UnigramModel>(vocabulary);
  return part;
}

// ---- Post-processors ----

// ["[SEP]", 102]
absl::StatusOr<int32_t> ReadTokenAndId(const nlohmann::json& json, const char* key,
                                       const std::string& where) {
  const nlohmann::json& pair = MemberOrNull(json, key);
  const bool valid = pair.is_array() && pair.size() == 2 && pair[1].is_number_integer() &&
                     pair[1] >= 0 && pair[1] < kMaxVocabulary;
  if (!valid) return UnexpectedJson(absl::StrCat(where, ".", key), "a token and its id", pair);
  return pair[1].get<int32_t>();
}

absl::StatusOr<Templates> ReadClsAndSep(const nlohmann::json& json, bool roberta,
                                        const std::string& where) {
  HPO_ASSIGN_OR_RETURN(const int32_t cls, ReadTokenAndId(json, "cls", where));
  HPO_ASSIGN_OR_RETURN(const int32_t sep, ReadTokenAndId(json, "sep", where));
  Templates templates;
  templates.single = {TokenPiece(cls), TextPiece(), TokenPiece(sep)};
  templates.pair = templates.single;
  if (roberta) templates.pair.push_back(TokenPiece(sep));
  templates.pair.push_back(PairPiece(roberta ? 0 : 1));
  templates.pair.push_back(TokenPiece(sep, roberta ? 0 : 1));
  return templates;
}

// The ids of a template's special token, from the post-processor's list of them.
absl::Status AppendSpecialToken(const nlohmann::json& tokens, const std::string& name,
                                int32_t type_id, const std::string& where, InputTemplate& pieces) {
  const nlohmann::json& ids =
      MemberOrNull(tokens.is_object() ? MemberOrNull(tokens, name.c_str()) : tokens, "ids");
  if (!ids.is_array()) return UnexpectedJson(where, "ids for " + name + " in special_tokens", ids);
  for (const nlohmann::json& id : ids) {
    if (!id.is_number_integer() || id < 0 || id >= kMaxVocabulary) {
      return UnexpectedJson(where, "an id for " + name + " in special_tokens", id);
    }
    pieces.push_back(TokenPiece(id.get<int32_t>(), type_id));
  }
  return absl::OkStatus();
}

absl::StatusOr<InputTemplate> ReadTemplate(const nlohmann::json& json, const char* key,
                                           const std::string& where) {
  const nlohmann::json& list = MemberOrNull(json, key);
  const std::string path = absl::StrCat(where, ".", key);
  if (!list.is_array()) return UnexpectedJson(path, "an array", list);
  InputTemplate pieces;
  for (const nlohmann::json& piece : list) {
    const bool special = piece.is_object() && piece.contains("SpecialToken");
    const char* const kind = special ? "SpecialToken" : "Sequence";
    if (!piece.is_object() || !piece.contains(kind)) {
      return UnexpectedJson(path, "SpecialToken or Sequence", piece);
    }
    std::string id;
    int64_t type_id = 0;
    JsonReader reader(piece.at(kind), path);
    reader.Required("id", id);
    reader.Optional("type_id", type_id);
    HPO_RETURN_IF_ERROR(reader.status());
    const auto type = static_cast<int32_t>(std::clamp<int64_t>(type_id, 0, kMaxVocabulary));
    if (special) {
      HPO_RETURN_IF_ERROR(
          AppendSpecialToken(MemberOrNull(json, "special_tokens"), id, type, path, pieces));
    } else {
      pieces.push_back({id == "B" ? TemplatePiece::Kind::kPair : TemplatePiece::Kind::kText, type});
    }
  }
  return pieces;
}

int64_t Count(const InputTemplate& pieces, TemplatePiece::Kind kind) {
  return std::count_if(pieces.begin(), pieces.end(),
                       [kind](const TemplatePiece& piece) { return piece.kind == kind; });
}

absl::StatusOr<Templates> ReadTemplates(const nlohmann::json& json, const std::string& where) {
  using Kind = TemplatePiece::Kind;
  Templates templates;
  HPO_ASSIGN_OR_RETURN(templates.single, ReadTemplate(json, "single", where));
  HPO_ASSIGN_OR_RETURN(templates.pair, ReadTemplate(json, "pair", where));
  const bool single =
      Count(templates.single, Kind::kText) == 1 && Count(templates.single, Kind::kPair) == 0;
  const bool pair =
      Count(templates.pair, Kind::kText) == 1 && Count(templates.pair, Kind::kPair) == 1;
  if (single && pair) return templates;
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": expected A once in single, A and B once in pair"));
}

bool AddsNothing(const nlohmann::json& processor) {
  return processor.is_object() && MemberOrNull(processor, "type") == "ByteLevel";
}

}  // namespace

absl::StatusOr<ModelPart> ReadModel(const nlohmann::json& json, bool byte_level,
                                    const std::string& where) {
  HPO_ASSIGN_OR_RETURN(const std::string type, ModelType(json, where));
  if (byte_level && type != "BPE") return UnknownPart(where, "BPE after ByteLevel", type);
  if (type == "BPE") return ReadBpe(json, byte_level, where);
  if (type == "WordPiece") return ReadWordPiece(json, where);
  if (type == "Unigram") return ReadUnigram(json, where);
  return UnknownPart(where, "a model", type);
}

absl::StatusOr<Templates> ReadPostProcessor(const nlohmann::json& json, const std::string& where) {
  // Of a Sequence the one part that adds tokens; null where none does.
  const nlohmann::json* adds = &json;
  if (json.is_object() && MemberOrNull(json, "type") == "Sequence") {
    adds = &MemberOrNull(json, "");
    const nlohmann::json& processors = MemberOrNull(json, "processors");
    if (!processors.is_array()) {
      return UnexpectedJson(where + ".processors", "an array", processors);
    }
    for (const nlohmann::json& processor : processors) {
      if (AddsNothing(processor)) continue;
      if (!adds->is_null()) return UnknownPart(where, "one post-processor that adds tokens", "two");
      adds = &processor;
    }
  }
  if (adds->is_null() || AddsNothing(*adds)) {
    return Templates{{TextPiece()}, {TextPiece(), PairPiece(1)}};
  }
  HPO_ASSIGN_OR_RETURN(const std::string type, PartType(*adds, where));
  if (type == "TemplateProcessing") return ReadTemplates(*adds, where);
  if (type == "BertProcessing") return ReadClsAndSep(*adds, /*roberta=*/false, where);
  if (type == "RobertaProcessing") return ReadClsAndSep(*adds, /*roberta=*/true, where);
  return UnknownPart(where, "a post-processor", type);
}

}  // namespace hpo::text
