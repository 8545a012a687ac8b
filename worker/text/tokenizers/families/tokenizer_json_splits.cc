// Tested by tests/worker/text/tokenizers/families/tokenizer_json_parts_test.cc.
#include "worker/text/tokenizers/families/tokenizer_json_splits.h"

#include <functional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "worker/text/tokenizers/families/tokenizer_json_parts.h"

namespace hpo::text {
namespace {

// A Replace's or Split's pattern: a string, or a regular expression.
struct Pattern {
  std::string text;
  bool is_regex = false;
};

absl::StatusOr<Pattern> ReadPattern(const nlohmann::json& part, const std::string& where) {
  const auto found = part.find("pattern");
  if (found != part.end() && found->is_object()) {
    for (const char* key : {"String", "Regex"}) {
      const auto text = found->find(key);
      if (text == found->end() || !text->is_string()) continue;
      const bool is_regex = std::string(key) == "Regex";
      if (is_regex || !text->get_ref<const std::string&>().empty()) {
        return Pattern{text->get<std::string>(), is_regex};
      }
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      where, ".pattern: expected an object with String or Regex, a text that is not empty"));
}

absl::StatusOr<NormalizerStep> ReadReplace(const nlohmann::json& json, const std::string& where) {
  HPO_ASSIGN_OR_RETURN(const Pattern pattern, ReadPattern(json, where));
  JsonReader reader(json, where);
  std::string content;
  reader.Required("content", content);
  HPO_RETURN_IF_ERROR(reader.status());
  if (!pattern.is_regex) return ReplaceLiteral{pattern.text, content};
  using What = ReplaceBlanks::What;
  for (const auto& [regex, what] :
       {std::pair(" {2,}", What::kBlankRuns), std::pair("\\s+", What::kSpaceRuns),
        std::pair("\\s{2,}|[\\n\\r\\t]", What::kRunsAndControl)}) {
    if (pattern.text == regex) return ReplaceBlanks{what, content};
  }
  return UnknownPart(where, "a regular expression", pattern.text);
}

absl::StatusOr<NormalizerStep> ReadPrecompiled(const nlohmann::json& json,
                                               const std::string& where) {
  JsonReader reader(json, where);
  std::string base64;
  reader.Optional("precompiled_charsmap", base64);
  HPO_RETURN_IF_ERROR(reader.status());
  std::string blob;
  if (!absl::Base64Unescape(base64, &blob)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ".precompiled_charsmap: expected base64"));
  }
  absl::StatusOr<Charsmap> charsmap = Charsmap::Parse(blob);
  if (!charsmap.ok()) {
    return Annotate(charsmap.status(), absl::StrCat(where, ".precompiled_charsmap"));
  }
  return *std::move(charsmap);
}

absl::StatusOr<NormalizerStep> ReadBertNormalizer(const nlohmann::json& json,
                                                  const std::string& where) {
  BertNormalization options;
  bool clean_text = true;
  JsonReader reader(json, where);
  reader.Optional("clean_text", clean_text);
  reader.Optional("handle_chinese_chars", options.split_cjk);
  reader.Optional("lowercase", options.lowercase);
  options.strip_accents = options.lowercase;
  reader.Optional("strip_accents", options.strip_accents);
  HPO_RETURN_IF_ERROR(reader.status());
  if (!clean_text) return UnknownPart(where, "clean_text", "false");
  return BertText{BertNormalizer(options)};
}

absl::StatusOr<NormalizerStep> ReadStrip(const nlohmann::json& json, const std::string& where) {
  StripBlanks strip;
  JsonReader reader(json, where);
  reader.Optional("strip_left", strip.left);
  reader.Optional("strip_right", strip.right);
  HPO_RETURN_IF_ERROR(reader.status());
  return strip;
}

absl::StatusOr<NormalizerStep> ReadPrepend(const nlohmann::json& json, const std::string& where) {
  Prepend prepend;
  JsonReader reader(json, where);
  reader.Required("prepend", prepend.text);
  HPO_RETURN_IF_ERROR(reader.status());
  return prepend;
}

absl::StatusOr<NormalizerStep> ReadNormalizerStep(const std::string& type,
                                                  const nlohmann::json& json,
                                                  const std::string& where) {
  if (type == "NFC") return NormalForm::kNfc;
  if (type == "NFD") return NormalForm::kNfd;
  if (type == "NFKC") return NormalForm::kNfkc;
  if (type == "NFKD") return NormalForm::kNfkd;
  if (type == "Lowercase") return Lowercase{};
  if (type == "StripAccents") return StripAccents{};
  if (type == "Strip") return ReadStrip(json, where);
  if (type == "Replace") return ReadReplace(json, where);
  if (type == "Prepend") return ReadPrepend(json, where);
  if (type == "Precompiled") return ReadPrecompiled(json, where);
  if (type == "BertNormalizer") return ReadBertNormalizer(json, where);
  return UnknownPart(where, "a normalizer", type);
}

using ReadPart = std::function<absl::Status(const nlohmann::json&, const std::string&)>;

// Calls read(part, its path) for every part of a Sequence's list, or for the part that is none.
absl::Status ForEachPart(const nlohmann::json& json, const char* list, const std::string& where,
                         const ReadPart& read) {
  if (json.is_null()) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(const std::string type, PartType(json, where));
  if (type != "Sequence") return read(json, where);
  const auto found = json.find(list);
  if (found == json.end() || !found->is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(where, ".", list, ": expected an array"));
  }
  for (size_t i = 0; i < found->size(); ++i) {
    HPO_RETURN_IF_ERROR(read((*found)[i], absl::StrCat(where, ".", list, "[", i, "]")));
  }
  return absl::OkStatus();
}

// ---- Pre-tokenizers ----

absl::StatusOr<SplitBehavior> ReadBehavior(const nlohmann::json& json, const std::string& where) {
  std::string name = "Isolated";
  JsonReader reader(json, where);
  reader.Optional("behavior", name);
  HPO_RETURN_IF_ERROR(reader.status());
  for (const auto& [known, behavior] :
       {std::pair("Removed", SplitBehavior::kRemoved),
        std::pair("Isolated", SplitBehavior::kIsolated),
        std::pair("MergedWithPrevious", SplitBehavior::kMergedWithPrevious),
        std::pair("MergedWithNext", SplitBehavior::kMergedWithNext),
        std::pair("Contiguous", SplitBehavior::kContiguous)}) {
    if (name == known) return behavior;
  }
  return UnknownPart(where, "a behavior", name);
}

absl::StatusOr<SplitStep> ReadSplit(const nlohmann::json& json, const std::string& where) {
  HPO_ASSIGN_OR_RETURN(const Pattern pattern, ReadPattern(json, where));
  HPO_ASSIGN_OR_RETURN(const SplitBehavior behavior, ReadBehavior(json, where));
  bool invert = false;
  JsonReader reader(json, where);
  reader.Optional("invert", invert);
  HPO_RETURN_IF_ERROR(reader.status());
  if (!pattern.is_regex) {
    if (invert) return UnknownPart(where, "invert", "true");
    return SplitAtLiteral{pattern.text, behavior};
  }
  const std::optional<SplitPattern> known = SplitPatternOf(pattern.text);
  if (!known.has_value()) return UnknownPart(where, "a regular expression", pattern.text);
  // The patterns leave nothing out, so that these two say the same.
  const bool cuts =
      invert ? behavior == SplitBehavior::kRemoved : behavior == SplitBehavior::kIsolated;
  if (!cuts) return UnknownPart(where, "the behavior Isolated", json.value("behavior", ""));
  return SplitAtPattern{*known};
}

absl::StatusOr<SplitStep> ReadMetaspace(const nlohmann::json& json, const std::string& where) {
  Metaspace metaspace;
  std::string scheme;
  bool add_prefix_space = true;  // older files
  JsonReader reader(json, where);
  reader.Required("replacement", metaspace.replacement);
  reader.Optional("add_prefix_space", add_prefix_space);
  reader.Optional("prepend_scheme", scheme);
  reader.Optional("split", metaspace.split);
  HPO_RETURN_IF_ERROR(reader.status());
  if (metaspace.replacement.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ".replacement: expected a character, got none"));
  }
  if (scheme.empty()) scheme = add_prefix_space ? "always" : "never";
  if (scheme == "always") {
    metaspace.prefix = Metaspace::Prefix::kAlways;
  } else if (scheme == "first") {
    metaspace.prefix = Metaspace::Prefix::kFirst;
  } else if (scheme == "never") {
    metaspace.prefix = Metaspace::Prefix::kNever;
  } else {
    return UnknownPart(where, "a prepend_scheme", scheme);
  }
  return metaspace;
}

absl::Status ReadByteLevel(const nlohmann::json& json, const std::string& where,
                           PreTokenizer& result) {
  bool add_prefix_space = true;
  bool use_regex = true;
  JsonReader reader(json, where);
  reader.Optional("add_prefix_space", add_prefix_space);
  reader.Optional("use_regex", use_regex);
  if (add_prefix_space) result.steps.emplace_back(PrefixBlank{});
  if (use_regex) result.steps.emplace_back(SplitAtPattern{SplitPattern::kGpt2});
  result.byte_level = true;
  return reader.status();
}

absl::StatusOr<SplitStep> ReadCharDelimiter(const nlohmann::json& json, const std::string& where) {
  SplitAtLiteral split = {.literal = "", .behavior = SplitBehavior::kRemoved};
  JsonReader reader(json, where);
  reader.Required("delimiter", split.literal);
  HPO_RETURN_IF_ERROR(reader.status());
  if (split.literal.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ".delimiter: expected a character, got none"));
  }
  return split;
}

absl::StatusOr<SplitStep> ReadDigits(const nlohmann::json& json, const std::string& where) {
  bool individual = false;
  JsonReader reader(json, where);
  reader.Optional("individual_digits", individual);
  HPO_RETURN_IF_ERROR(reader.status());
  return SplitAtClass{SplitAtClass::What::kDigits,
                      individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous};
}

absl::StatusOr<SplitStep> ReadPunctuation(const nlohmann::json& json, const std::string& where) {
  HPO_ASSIGN_OR_RETURN(const SplitBehavior behavior, ReadBehavior(json, where));
  return SplitAtClass{SplitAtClass::What::kPunctuation, behavior};
}

absl::StatusOr<SplitStep> ReadSplitStep(const std::string& type, const nlohmann::json& json,
                                        const std::string& where) {
  if (type == "Split") return ReadSplit(json, where);
  if (type == "Metaspace") return ReadMetaspace(json, where);
  if (type == "Whitespace") return SplitWordCharacters{};
  if (type == "WhitespaceSplit") return SplitAtClass{};
  if (type == "Punctuation") return ReadPunctuation(json, where);
  if (type == "Digits") return ReadDigits(json, where);
  if (type == "CharDelimiterSplit") return ReadCharDelimiter(json, where);
  return UnknownPart(where, "a pre-tokenizer", type);
}

absl::Status AddPreTokenizer(const nlohmann::json& json, const std::string& where,
                             PreTokenizer& result) {
  HPO_ASSIGN_OR_RETURN(const std::string type, PartType(json, where));
  if (result.byte_level) return UnknownPart(where, "nothing after ByteLevel", type);
  if (type == "ByteLevel") return ReadByteLevel(json, where, result);
  if (type == "BertPreTokenizer") {
    result.bert = result.steps.empty();
    result.steps.emplace_back(SplitAtClass{});
    result.steps.emplace_back(
        SplitAtClass{SplitAtClass::What::kPunctuation, SplitBehavior::kIsolated});
    return absl::OkStatus();
  }
  result.bert = false;
  HPO_ASSIGN_OR_RETURN(SplitStep step, ReadSplitStep(type, json, where));
  result.steps.push_back(std::move(step));
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadNormalizer(const nlohmann::json& json, const std::string& where,
                            std::vector<NormalizerStep>& steps) {
  return ForEachPart(json, "normalizers", where,
                     [&](const nlohmann::json& part, const std::string& path) -> absl::Status {
                       HPO_ASSIGN_OR_RETURN(const std::string type, PartType(part, path));
                       HPO_ASSIGN_OR_RETURN(NormalizerStep step,
                                            ReadNormalizerStep(type, part, path));
                       steps.push_back(std::move(step));
                       return absl::OkStatus();
                     });
}

absl::StatusOr<PreTokenizer> ReadPreTokenizer(const nlohmann::json& json,
                                              const std::string& where) {
  PreTokenizer result;
  HPO_RETURN_IF_ERROR(ForEachPart(json, "pretokenizers", where,
                                  [&](const nlohmann::json& part, const std::string& path) {
                                    return AddPreTokenizer(part, path, result);
                                  }));
  return result;
}

}  // namespace hpo::text
