#include "common/space/placeholders.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/spelling.h"
#include "common/base/status.h"

namespace hpo {
namespace {

constexpr char kConfig[] = "config";
constexpr size_t kMostShown = 20;  // parameters in an error

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

bool Lists(const std::vector<std::string>& names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

absl::string_view LastPart(absl::string_view name) { return name.substr(name.rfind('.') + 1); }

// The one whose last part is the same (train.lr and lr), else the nearest by spelling.
std::optional<std::string> Nearest(absl::string_view name,
                                   const std::vector<std::string>& candidates) {
  const auto same_end = [name](const std::string& candidate) {
    return LastPart(candidate) == LastPart(name);
  };
  const auto found = std::find_if(candidates.begin(), candidates.end(), same_end);
  return found != candidates.end() ? *found : ClosestWord(name, candidates);
}

std::string Listed(const std::vector<std::string>& names) {
  const size_t num_shown = std::min(names.size(), kMostShown);
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(num_shown));
  const std::string text = absl::StrJoin(shown, ", ");
  return num_shown == names.size() ? text
                                   : absl::StrCat(text, " and ", names.size() - num_shown, " more");
}

absl::Status NoSuchPlaceholder(const std::string& place, const std::vector<std::string>& names) {
  absl::string_view name = place;
  const bool is_flag = absl::ConsumePrefix(&name, kFlagPrefix);
  std::vector<std::string> candidates = names;
  if (!is_flag) {
    candidates.insert(candidates.end(), {kAllParameters, kAllOverrides});
    candidates.insert(candidates.end(), TrialValueNames().begin(), TrialValueNames().end());
  }
  const std::optional<std::string> nearest = Nearest(name, candidates);
  return absl::InvalidArgumentError(absl::StrCat(
      "expected placeholders for parameters of the study, which are ", Listed(names),
      is_flag ? "" : ", or {args} for all of them, or for values such as {trial} and {output_dir}",
      ", got {", place, "}",
      nearest ? absl::StrCat("; did you mean {", is_flag ? kFlagPrefix : "", *nearest, "}?") : "",
      "; write {{", place, "}} to pass these braces to the program"));
}

// Whether `prefix`, which stands before a colon in braces, is meant for one of ours.
bool IsLikeFlag(absl::string_view prefix) {
  const absl::string_view flag = absl::StripSuffix(kFlagPrefix, ":");
  return prefix.size() > 2 && EditDistance(absl::AsciiStrToLower(prefix), flag) <= 2;
}

// Of text that is no placeholder: whether it holds one with a prefix or a suffix that there is not.
absl::Status CheckPrefixes(absl::string_view text, const std::vector<std::string>& names) {
  for (size_t at = text.find('{'); at != absl::string_view::npos; at = text.find('{', at + 1)) {
    if (at > 0 && (text[at - 1] == '$' || text[at - 1] == '{')) continue;
    const absl::string_view inside = text.substr(at + 1, text.find('}', at) - at - 1);
    const size_t colon = inside.find(':');
    if (colon == absl::string_view::npos) continue;
    const absl::string_view prefix = inside.substr(0, colon);
    const absl::string_view name = inside.substr(colon + 1);
    const bool is_config =
        prefix == kConfig && std::all_of(name.begin(), name.end(), IsNameCharacter);
    if (!is_config && !(IsLikeFlag(prefix) && Lists(names, name))) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "expected placeholders such as ", is_config ? "{config:yaml} or {config:json}" : "",
        is_config ? "" : absl::StrCat("{flag:", name, "}"), ", got {", inside, "}"));
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<std::string>& TrialValueNames() {
  static const auto* const names = new std::vector<std::string>(
      {"accumulation", "attempt",     "checkpoint_dir",  "config",     "config:json",
       "config:yaml",  "device",      "effective_batch", "epochs",     "gpus",
       "limit_bytes",  "micro_batch", "model_name",      "model_path", "output_dir",
       "seed",         "study",       "train_path",      "trial",      "validation_path"});
  return *names;
}

size_t PlaceholderLength(absl::string_view text) {
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "{")) return 0;
  absl::ConsumePrefix(&rest, kFlagPrefix);
  const char first = rest.empty() ? '\0' : rest[0];
  if (!absl::ascii_isalpha(static_cast<unsigned char>(first)) && first != '_') return 0;
  const auto end = std::find_if_not(rest.begin(), rest.end(), IsNameCharacter);
  const bool is_config =
      rest.substr(0, static_cast<size_t>(end - rest.begin())) == kConfig && rest.data() == &text[1];
  rest.remove_prefix(static_cast<size_t>(end - rest.begin()));
  if (is_config && !absl::ConsumePrefix(&rest, ":json")) absl::ConsumePrefix(&rest, ":yaml");
  if (!absl::ConsumePrefix(&rest, "}")) return 0;
  return text.size() - rest.size();
}

std::vector<CommandPiece> CutAtPlaceholders(absl::string_view text) {
  std::vector<CommandPiece> pieces;
  std::string plain;
  while (!text.empty()) {
    const bool escaped = text.size() > 2 && text[0] == '{' && text[1] == '{';
    const size_t length = PlaceholderLength(escaped ? text.substr(1) : text);
    if (escaped && length > 0 && text.size() > length + 1 && text[length + 1] == '}') {
      absl::StrAppend(&plain, text.substr(1, length));
      text.remove_prefix(length + 2);
    } else if (!escaped && length > 0 && (plain.empty() || plain.back() != '$')) {
      pieces.push_back({.text = std::exchange(plain, "")});
      pieces.push_back({.text = std::string(text.substr(1, length - 2)), .is_placeholder = true});
      text.remove_prefix(length);
    } else {
      plain += text[0];
      text.remove_prefix(1);
    }
  }
  pieces.push_back({.text = std::move(plain)});
  return pieces;
}

std::string WithoutPlaceholders(absl::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const bool after_dollar = !escaped.empty() && escaped.back() == '$';
    const size_t length = after_dollar ? 0 : PlaceholderLength(text);
    if (length > 0) {
      absl::StrAppend(&escaped, "{", text.substr(0, length), "}");
    } else {
      escaped += text[0];
    }
    text.remove_prefix(std::max<size_t>(1, length));
  }
  return escaped;
}

absl::Status CheckPlaceholders(absl::string_view text, const std::vector<std::string>& names) {
  for (const CommandPiece& piece : CutAtPlaceholders(text)) {
    if (!piece.is_placeholder) {
      HPO_RETURN_IF_ERROR(CheckPrefixes(piece.text, names));
      continue;
    }
    absl::string_view name = piece.text;
    const bool is_flag = absl::ConsumePrefix(&name, kFlagPrefix);
    if (Lists(names, name)) continue;
    const bool is_known = !is_flag && (name == kAllParameters || name == kAllOverrides ||
                                       Lists(TrialValueNames(), name));
    if (!is_known) return NoSuchPlaceholder(piece.text, names);
  }
  return absl::OkStatus();
}

}  // namespace hpo
