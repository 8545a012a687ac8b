#include "cli/program/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/client/terminal.h"
#include "common/selection/trial_states.h"
#include "common/study_file/study_file.h"

namespace hpo::cli {
namespace {

constexpr char kBashScript[] = R"(# Completion of hpo for bash; written by: hpo completion bash
_hpo() {
  local program="${1/#\~/$HOME}" line="${COMP_LINE:0:COMP_POINT}" current kept='' reply
  local -a words
  read -r -a words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  while ((${#words[@]} > 1)) && [[ ${words[0]} == *=* ]]; do words=("${words[@]:1}"); done
  current="${words[-1]}"
  # Readline replaces only what follows the last = or : of a word.
  [[ $current == *[=:]* ]] && kept="${current%"${current##*[=:]}"}"
  COMPREPLY=()
  while IFS= read -r reply; do
    case "$reply" in
      :none) ;;
      :files | :folders)
        compopt -o filenames 2> /dev/null
        local kind=-f
        [[ $reply == :folders ]] && kind=-d
        while IFS= read -r reply; do COMPREPLY+=("$reply"); done \
          < <(compgen "$kind" -- "${current#"$kept"}")
        ;;
      *)
        reply="${reply%%$'\t'*}"
        COMPREPLY+=("${reply#"$kept"}")
        ;;
    esac
  done < <("$program" __complete "${words[@]:1}" 2> /dev/null)
}
complete -F _hpo hpo
)";

constexpr char kZshScript[] = R"(#compdef hpo
# Completion of hpo for zsh; written by: hpo completion zsh
_hpo() {
  local line directive=':none'
  local -a candidates before
  before=("${(@Q)words[2,CURRENT-1]}")
  (( CURRENT < 3 )) && before=()
  while IFS= read -r line; do
    if [[ $line == :* ]]; then
      directive=$line
    else
      candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    fi
  done < <("${(Q)words[1]}" __complete "${before[@]}" "$PREFIX" 2> /dev/null)
  (( $#candidates )) && _describe -t values 'hpo' candidates
  case $directive in
    :files) compset -P '*='; _files ;;
    :folders) compset -P '*='; _files -/ ;;
  esac
}
if [[ $funcstack[1] == _hpo ]]; then
  _hpo "$@"
else
  compdef _hpo hpo
fi
)";

constexpr char kFishScript[] = R"(# Completion of hpo for fish; written by: hpo completion fish
function __hpo_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    for line in ($before[1] __complete $before[2..-1] "$current" 2> /dev/null)
        switch $line
            case ':none'
            case ':files'
                __fish_complete_path "$current"
            case ':folders'
                __fish_complete_directories "$current" ''
            case '*'
                echo $line
        end
    end
end
complete -c hpo -f -a '(__hpo_complete)'
)";

bool IsHidden(const CLI::App& app) { return app.get_group().empty(); }

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// "--study" of "--study=a".
std::string NameOf(const std::string& word) { return word.substr(0, word.find('=')); }

// That of `app`, or of the commands above it.
const CLI::Option* FindOption(const CLI::App& app, const std::string& word) {
  const std::string name = NameOf(word);
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      if (!option->nonpositional()) continue;
      if (option->check_name(name)) return option;
    }
  }
  return nullptr;
}

const CLI::App* FindCommand(const CLI::App& app, const std::string& word) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == word) return command;
  }
  return nullptr;
}

// Where a command line is after some words.
struct Place {
  const CLI::App* command = nullptr;
  const CLI::Option* awaiting = nullptr;  // the option whose value comes next
  size_t num_positionals = 0;
  bool options_are_over = false;  // after --
};

void NoteValue(const CLI::Option& option, const std::string& value, Completions& completions) {
  if (option.check_name("--server")) completions.server = value;
  if (option.check_name("--db")) completions.database = value;
}

void Step(const std::string& word, Place& place, Completions& completions) {
  if (place.awaiting != nullptr) {
    NoteValue(*place.awaiting, word, completions);
    place.awaiting = nullptr;
  } else if (!place.options_are_over && word == "--") {
    place.options_are_over = true;
  } else if (!place.options_are_over && word.size() > 1 && word[0] == '-') {
    const CLI::Option* const option = FindOption(*place.command, word);
    if (option == nullptr || !TakesValue(*option)) return;
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      place.awaiting = option;
    } else {
      NoteValue(*option, word.substr(equals + 1), completions);
    }
  } else if (const CLI::App* command = FindCommand(*place.command, word);
             command != nullptr && !place.options_are_over) {
    place.command = command;
    place.num_positionals = 0;
  } else {
    ++place.num_positionals;
  }
}

// The choices of OneOf (common/command_line/bounds.h), which stand in the type's name:
// "TEXT:{table,json,yaml}".
std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{');
  const size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return absl::StrSplit(type.substr(open + 1, close - open - 1), ',');
}

// Values of an option or a positional argument, whose type's name says what it is.
void AddValues(const CLI::Option& option, const std::string& prefix, const std::string& typed,
               Completions& completions) {
  const std::string type = NameOf(option.get_type_name());
  const std::string kind = type.substr(0, type.find(':'));
  std::vector<std::string> values = ChoicesOf(option);
  if (kind == "STATE") {
    for (const TrialState state : kTrialStates)
      values.push_back(absl::AsciiStrToLower(Name(state)));
  }
  if (kind == "PRESET" || kind == "FILE|NAME") values = PresetNames();
  for (const std::string& value : values) {
    if (absl::StartsWith(value, typed)) completions.candidates.push_back({prefix + value, ""});
  }
  if (kind == "STUDY") {
    completions.wants_studies = true;
    completions.study_prefix = prefix;
  }
  if (absl::StartsWith(kind, "FILE") || absl::EndsWith(kind, ".yaml")) {
    completions.paths = Completions::Paths::kFiles;
  }
  if (kind == "DIR" || kind == "MODEL_DIR") completions.paths = Completions::Paths::kFolders;
}

// Its first clause: descriptions stand beside names, in one line.
std::string ShortDescription(const std::string& description) {
  return Printable(absl::string_view(description).substr(0, description.find_first_of(";[(")));
}

void AddOptions(const CLI::App& command, const std::string& typed, Completions& completions) {
  for (const CLI::App* at = &command; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      if (option->get_group().empty()) continue;
      for (const std::string& name : option->get_lnames()) {
        const Completions::Candidate candidate{"--" + name,
                                               ShortDescription(option->get_description())};
        const bool is_known = std::any_of(
            completions.candidates.begin(), completions.candidates.end(),
            [&](const Completions::Candidate& other) { return other.word == candidate.word; });
        if (!is_known && absl::StartsWith(candidate.word, typed)) {
          completions.candidates.push_back(candidate);
        }
      }
    }
  }
}

void AddCommands(const CLI::App& command, const std::string& typed, Completions& completions) {
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (IsHidden(*below) || !absl::StartsWith(below->get_name(), typed)) continue;
    completions.candidates.push_back(
        {below->get_name(), ShortDescription(below->get_description())});
  }
}

// The positional argument whose value comes next; the last one may take many.
const CLI::Option* NextPositional(const Place& place) {
  std::vector<const CLI::Option*> positionals;
  for (const CLI::Option* option : place.command->get_options()) {
    if (option->get_positional()) positionals.push_back(option);
  }
  if (positionals.empty()) return nullptr;
  if (place.num_positionals < positionals.size()) return positionals[place.num_positionals];
  return positionals.back()->get_items_expected_max() > 1 ? positionals.back() : nullptr;
}

}  // namespace

Completions CompleteWords(const CLI::App& app, const std::vector<std::string>& words) {
  Completions completions;
  Place place{.command = &app};
  for (size_t i = 0; i + 1 < words.size(); ++i) Step(words[i], place, completions);
  const std::string last = words.empty() ? "" : words.back();
  if (place.awaiting != nullptr) {
    AddValues(*place.awaiting, "", last, completions);
    return completions;
  }
  if (!place.options_are_over && absl::StartsWith(last, "-")) {
    const size_t equals = last.find('=');
    const CLI::Option* const option = FindOption(*place.command, last);
    if (equals == std::string::npos) {
      AddOptions(*place.command, last, completions);
    } else if (option != nullptr && TakesValue(*option)) {
      AddValues(*option, last.substr(0, equals + 1), last.substr(equals + 1), completions);
    }
    return completions;
  }
  if (!place.options_are_over) AddCommands(*place.command, last, completions);
  if (const CLI::Option* const next = NextPositional(place)) {
    AddValues(*next, "", last, completions);
  }
  return completions;
}

void AddStudyNames(const std::vector<std::string>& studies, const std::string& typed,
                   Completions& completions) {
  for (const std::string& study : studies) {
    const std::string word = completions.study_prefix + study;
    if (absl::StartsWith(word, typed)) completions.candidates.push_back({word, "study"});
  }
}

std::string CompletionText(const Completions& completions) {
  std::string text;
  for (const auto& [word, description] : completions.candidates) {
    absl::StrAppend(&text, Printable(word), "\t", description, "\n");
  }
  switch (completions.paths) {
    case Completions::Paths::kNone:
      return text + ":none\n";
    case Completions::Paths::kFiles:
      return text + ":files\n";
    case Completions::Paths::kFolders:
      return text + ":folders\n";
  }
  return text;
}

absl::StatusOr<std::string> CompletionScript(const std::string& shell) {
  if (shell == "bash") return std::string(kBashScript);
  if (shell == "zsh") return std::string(kZshScript);
  if (shell == "fish") return std::string(kFishScript);
  return absl::InvalidArgumentError(
      absl::StrCat("completion: expected bash, zsh or fish, got '", shell, "'"));
}

}  // namespace hpo::cli
