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
#include "common/space/placeholders.h"
#include "worker/command/param_text.h"

namespace hpo::command {
namespace {

// Stands for a placeholder within a word, so that the rest is no word of its own.
constexpr char kNoWord = '\0';

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

// A word with what is not a placeholder quoted.
std::string QuotedAroundPlaces(absl::string_view word) {
  std::string quoted;
  for (const CommandPiece& piece : CutAtPlaceholders(word)) {
    if (piece.is_placeholder) {
      absl::StrAppend(&quoted, "{", piece.text, "}");
    } else if (!piece.text.empty()) {
      quoted += ShellWord(WithoutPlaceholders(piece.text));
    }
  }
  return quoted.empty() ? ShellWord("") : quoted;
}

using Values = std::map<std::string, std::string>;

// The parameter that a place gives as an option of its own, after the text before it; empty: none.
std::string OptionOf(absl::string_view before, absl::string_view place) {
  if (absl::ConsumePrefix(&place, kFlagPrefix)) return std::string(place);
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

CommandTemplate::CommandTemplate(absl::string_view text) {
  ShellQuoteReader quotes;
  std::string before;
  for (CommandPiece& piece : CutAtPlaceholders(text)) {
    if (piece.is_placeholder) {
      names_.push_back(piece.text);
      if (const std::string option = OptionOf(before, piece.text); !option.empty()) {
        own_options_.insert(option);
      }
    } else {
      quotes.Pass(piece.text);
      before = piece.text;
    }
    pieces_.push_back({.text = std::move(piece.text),
                       .is_place = piece.is_placeholder,
                       .quotes = piece.is_placeholder ? quotes.now() : ShellQuotes::kNone,
                       .unsafe = piece.is_placeholder ? quotes.unsafe() : ""});
  }
}

absl::Status CommandTemplate::CheckForShell() const {
  for (const Piece& piece : pieces_) {
    if (piece.unsafe.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "expected placeholders where the shell takes a value as it is, got {", piece.text,
        "} in or after ", piece.unsafe,
        ", where a value could be run as a command; there read the value from the environment "
        "(HPO_PARAM_NAME or HPO_PARAMS), or give the command as a list of words"));
  }
  return absl::OkStatus();
}

std::string CommandTemplate::PlainText() const {
  return absl::StrJoin(pieces_, "", [](std::string* out, const Piece& piece) {
    out->append(piece.is_place ? std::string(1, kNoWord) : piece.text);
  });
}

bool CommandTemplate::Has(absl::string_view name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

absl::StatusOr<CommandTemplate::Filling> CommandTemplate::FillingOf(const std::string& place,
                                                                    const ParamMap& params,
                                                                    const Values& values) const {
  absl::string_view name = place;
  const bool is_flag = absl::ConsumePrefix(&name, kFlagPrefix);
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
  if (for_shell) HPO_RETURN_IF_ERROR(CheckForShell());
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

MemoryPlan PlanOfRank(MemoryPlan plan, int64_t gpus) {
  const int64_t rows = (plan.effective_batch + gpus - 1) / gpus;
  plan.micro_batch = std::min(plan.micro_batch, std::max(int64_t{1}, rows));
  return plan;
}

std::map<std::string, std::string> JobValues(const TrainerJob& job, const MemoryPlan& plan) {
  const int64_t gpus = job.task.trainer.gpus;
  MemoryPlan of_all = plan;  // what one pass of all ranks takes
  of_all.micro_batch *= gpus;
  const std::string config = job.output_dir + "/hpo_params.";
  return {
      {"config", config + "yaml"},
      {"config:yaml", config + "yaml"},
      {"config:json", config + "json"},
      {"trial", absl::StrCat(job.trial.value)},
      {"attempt", absl::StrCat(job.attempt.value)},
      {"study", job.study},
      {"seed", absl::StrCat(job.task.seed)},
      {"device", job.device},
      {"epochs", absl::StrCat(job.task.trainer.epochs)},
      {"gpus", absl::StrCat(gpus)},
      {"train_path", job.task.trainer.train},
      {"validation_path", job.task.trainer.validation},
      {"model_name", job.model_name},
      {"model_path", job.model_path},
      {"output_dir", job.output_dir},
      {"checkpoint_dir", job.checkpoints.folder},
      {"limit_bytes", absl::StrCat(job.task.limit.count)},
      {"micro_batch", absl::StrCat(plan.micro_batch)},
      {"accumulation", absl::StrCat(of_all.NumParts())},
      {"effective_batch", absl::StrCat(plan.effective_batch)},
  };
}

}  // namespace hpo::command
