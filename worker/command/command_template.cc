#include "worker/command/command_template.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/command_line/shell_word.h"

namespace hpo {
namespace {

constexpr char kAllParameters[] = "args";

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

// How long the place at the beginning of `text` is, its braces included; 0: there is none.
size_t PlaceLength(absl::string_view text) {
  if (text.size() < 3 || text[0] != '{') return 0;
  const auto first = static_cast<unsigned char>(text[1]);
  if (!absl::ascii_isalpha(first) && first != '_') return 0;
  const auto end = std::find_if_not(text.begin() + 2, text.end(), IsNameCharacter);
  if (end == text.end() || *end != '}') return 0;
  return static_cast<size_t>(end - text.begin()) + 1;
}

// The value itself, not what is shown to people: a real number with all its digits.
std::string ValueText(const ParamValue& value) {
  const auto* const number = std::get_if<double>(&value);
  if (number == nullptr) return FormatParam(value);
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), *number);
  return std::string(text.data(), end.ptr);
}

std::string AllParameters(const ParamMap& params) {
  std::vector<std::string> words;
  for (const auto& [name, value] : params) {
    if (std::holds_alternative<Null>(value)) continue;  // the program's own default
    words.push_back(ShellWord(absl::StrCat("--", name, "=", ValueText(value))));
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

std::optional<std::string> Find(const std::string& name, const ParamMap& params,
                                const Values& values) {
  if (const auto param = params.find(name); param != params.end()) {
    return ValueText(param->second);
  }
  if (const auto value = values.find(name); value != values.end()) return value->second;
  return std::nullopt;
}

absl::Status NoSuchValue(const std::string& name, const ParamMap& params, const Values& values) {
  std::set<std::string> known = {kAllParameters};
  for (const auto& [param, unused] : params) known.insert(param);
  for (const auto& [value, unused] : values) known.insert(value);
  return absl::InvalidArgumentError(absl::StrCat(
      "{", name, "}: this trial has no such value; it has ", absl::StrJoin(known, ", "),
      ". {args} stands for all parameters of the trial; write {{", name,
      "}} to pass these braces to the program"));
}

}  // namespace

CommandTemplate::CommandTemplate(std::string text) {
  std::string plain;
  absl::string_view rest = text;
  while (!rest.empty()) {
    const bool escaped = rest.size() > 2 && rest[0] == '{' && rest[1] == '{';
    const size_t length = PlaceLength(escaped ? rest.substr(1) : rest);
    if (escaped && length > 0 && rest.size() > length + 1 && rest[length + 1] == '}') {
      absl::StrAppend(&plain, rest.substr(1, length));
      rest.remove_prefix(length + 2);
    } else if (!escaped && length > 0 && (plain.empty() || plain.back() != '$')) {
      pieces_.push_back({.text = std::exchange(plain, "")});
      names_.emplace_back(rest.substr(1, length - 2));
      pieces_.push_back({.text = names_.back(), .is_place = true});
      rest.remove_prefix(length);
    } else {
      plain += rest[0];
      rest.remove_prefix(1);
    }
  }
  pieces_.push_back({.text = std::move(plain)});
}

bool CommandTemplate::Has(absl::string_view name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

absl::StatusOr<std::string> CommandTemplate::Fill(const ParamMap& params,
                                                  const std::map<std::string, std::string>& values,
                                                  bool for_shell) const {
  std::string filled;
  for (const Piece& piece : pieces_) {
    std::string value = piece.text;
    if (piece.is_place && piece.text == kAllParameters && !params.contains(piece.text)) {
      value = AllParameters(params);
    } else if (piece.is_place) {
      const std::optional<std::string> found = Find(piece.text, params, values);
      if (!found) return NoSuchValue(piece.text, params, values);
      value = for_shell ? ShellWord(*found) : *found;
    }
    filled += value;
  }
  return filled;
}

std::string ShellCommand(const std::vector<std::string>& words) {
  return absl::StrJoin(words, " ", [](std::string* out, const std::string& word) {
    absl::StrAppend(out, QuotedAroundPlaces(word));
  });
}

std::map<std::string, std::string> JobValues(const TrainerJob& job, const MemoryPlan& plan) {
  return {
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
