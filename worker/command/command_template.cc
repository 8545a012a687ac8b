#include "worker/command/command_template.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/command_line/shell_word.h"
#include "worker/command/param_text.h"

namespace hpo {
namespace {

constexpr char kAllParameters[] = "args";
constexpr char kAllOverrides[] = "overrides";
constexpr char kFlag[] = "flag:";
constexpr char kConfig[] = "config";

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

// How long the place at the beginning of `text` is, its braces included; 0: there is none.
size_t PlaceLength(absl::string_view text) {
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "{")) return 0;
  absl::ConsumePrefix(&rest, kFlag);
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

// All parameters but those of `left_out`, each as one word of the shell's.
template <typename ToText>
std::string Words(const ParamMap& params, const std::set<std::string>& left_out, ToText to_text) {
  std::vector<std::string> words;
  for (const auto& [name, value] : params) {
    if (left_out.contains(name)) continue;
    const std::string text = to_text(name, value);
    if (!text.empty()) words.push_back(ShellWord(text));
  }
  return absl::StrJoin(words, " ");
}

// A word with what is not a place quoted.
std::string QuotedAroundPlaces(absl::string_view word) {
  std::string quoted;
  std::string plain;
  while (!word.empty()) {
    const size_t length = PlaceLength(word);
    if (length == 0) {
      plain += word[0];
      word.remove_prefix(1);
      continue;
    }
    if (!plain.empty()) quoted += ShellWord(std::exchange(plain, ""));
    absl::StrAppend(&quoted, word.substr(0, length));
    word.remove_prefix(length);
  }
  if (!plain.empty() || quoted.empty()) quoted += ShellWord(plain);
  return quoted;
}

using Values = std::map<std::string, std::string>;

// The parameter that a place gives as an option of its own, after the text before it; empty: none.
std::string OptionOf(absl::string_view before, absl::string_view place) {
  if (absl::ConsumePrefix(&place, kFlag)) return std::string(place);
  if (absl::EndsWith(before, "\"") || absl::EndsWith(before, "'")) before.remove_suffix(1);
  if (!absl::ConsumeSuffix(&before, "=") && !absl::ConsumeSuffix(&before, " ")) return "";
  before = absl::StripTrailingAsciiWhitespace(before);
  if (!absl::ConsumeSuffix(&before, absl::StrCat("--", place))) return "";
  const bool begins_word =
      before.empty() || absl::ascii_isspace(static_cast<unsigned char>(before.back()));
  return begins_word ? std::string(place) : "";
}

absl::Status NoSuchValue(const std::string& name, const ParamMap& params, const Values& values) {
  std::set<std::string> known = {kAllParameters, kAllOverrides};
  for (const auto& [param, unused] : params) known.insert(param);
  for (const auto& [value, unused] : values) known.insert(value);
  return absl::InvalidArgumentError(absl::StrCat(
      "{", name, "}: this trial has no such value; it has ", absl::StrJoin(known, ", "),
      ". {args} stands for all parameters that the trial has; write {{", name,
      "}} to pass these braces to the program"));
}

}  // namespace

CommandTemplate::CommandTemplate(std::string text) {
  std::string plain;
  ShellQuoteReader quotes;
  const auto take = [&](size_t count, absl::string_view& rest) {
    quotes.Pass(rest.substr(0, count));
    absl::StrAppend(&plain, rest.substr(0, count));
    rest.remove_prefix(count);
  };
  absl::string_view rest = text;
  while (!rest.empty()) {
    const bool escaped = rest.size() > 2 && rest[0] == '{' && rest[1] == '{';
    const size_t length = PlaceLength(escaped ? rest.substr(1) : rest);
    if (escaped && length > 0 && rest.size() > length + 1 && rest[length + 1] == '}') {
      rest.remove_prefix(1);
      take(length, rest);
      rest.remove_prefix(1);
    } else if (!escaped && length > 0 && (plain.empty() || plain.back() != '$')) {
      names_.emplace_back(rest.substr(1, length - 2));
      if (const std::string option = OptionOf(plain, names_.back()); !option.empty()) {
        own_options_.insert(option);
      }
      pieces_.push_back({.text = std::exchange(plain, "")});
      pieces_.push_back({.text = names_.back(), .is_place = true, .quotes = quotes.now()});
      rest.remove_prefix(length);
    } else {
      take(1, rest);
    }
  }
  pieces_.push_back({.text = std::move(plain)});
}

bool CommandTemplate::Has(absl::string_view name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

absl::StatusOr<CommandTemplate::Filling> CommandTemplate::FillingOf(const std::string& place,
                                                                    const ParamMap& params,
                                                                    const Values& values) const {
  absl::string_view name = place;
  const bool is_flag = absl::ConsumePrefix(&name, kFlag);
  if (const auto param = params.find(std::string(name)); param != params.end()) {
    if (!is_flag) return Filling{.text = ValueText(param->second)};
    const std::string option = OptionText(param->first, param->second);
    return Filling{.text = option.empty() ? "" : ShellWord(option), .is_words = true};
  }
  if (is_flag) return NoSuchValue(place, params, values);
  if (place == kAllParameters) {
    return Filling{.text = Words(params, own_options_, OptionText), .is_words = true};
  }
  if (place == kAllOverrides) {
    return Filling{.text = Words(params, {}, OverrideText), .is_words = true};
  }
  const auto value = values.find(place);
  if (value == values.end()) return NoSuchValue(place, params, values);
  return Filling{.text = value->second};
}

std::string CommandTemplate::Quoted(const Filling& filling, ShellQuotes quotes) {
  switch (quotes) {
    case ShellQuotes::kNone:
      break;
    case ShellQuotes::kSingle:
      return absl::StrReplaceAll(filling.text, {{"'", "'\\''"}});
    case ShellQuotes::kDouble:
      return absl::StrReplaceAll(filling.text,
                                 {{"\\", "\\\\"}, {"\"", "\\\""}, {"$", "\\$"}, {"`", "\\`"}});
  }
  return filling.is_words ? filling.text : ShellWord(filling.text);
}

absl::StatusOr<std::string> CommandTemplate::Fill(const ParamMap& params, const Values& values,
                                                  bool for_shell) const {
  std::string filled;
  for (const Piece& piece : pieces_) {
    if (!piece.is_place) {
      filled += piece.text;
      continue;
    }
    HPO_ASSIGN_OR_RETURN(const Filling filling, FillingOf(piece.text, params, values));
    filled += for_shell ? Quoted(filling, piece.quotes) : filling.text;
  }
  return filled;
}

std::string ShellCommand(const std::vector<std::string>& words) {
  if (const std::optional<std::string> text = TextOf(words)) return *text;
  return absl::StrJoin(words, " ", [](std::string* out, const std::string& word) {
    absl::StrAppend(out, QuotedAroundPlaces(word));
  });
}

std::map<std::string, std::string> JobValues(const TrainerJob& job, const MemoryPlan& plan) {
  const std::string config = job.output_dir + "/hpo_params.";
  return {
      {"config", config + "yaml"},
      {"config:yaml", config + "yaml"},
      {"config:json", config + "json"},
      {"trial", absl::StrCat(job.trial.value)},
      {"attempt", absl::StrCat(job.attempt.value)},
      {"study", job.study},
      {"seed", absl::StrCat(job.seed)},
      {"device", job.device},
      {"epochs", absl::StrCat(job.epochs)},
      {"train_path", job.train_path},
      {"validation_path", job.validation_path},
      {"model_name", job.model_name},
      {"model_path", job.model_path},
      {"output_dir", job.output_dir},
      {"checkpoint_dir", job.checkpoints.folder},
      {"limit_bytes", absl::StrCat(job.limit.count)},
      {"micro_batch", absl::StrCat(plan.micro_batch)},
      {"accumulation", absl::StrCat(plan.NumParts())},
      {"effective_batch", absl::StrCat(plan.effective_batch)},
  };
}

}  // namespace hpo
