#include "worker/command/unstarted_program.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "re2/re2.h"

namespace hpo::command {
namespace {

constexpr int kPythonsStatus = 2;
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

// "sh: 1: NAME: not found", "bash: line 1: NAME: command not found", "env: 'NAME': No such file or
// directory", "sh: NAME: INTERPRETER: bad interpreter: No such file or directory".
const RE2& ShellsWords() {
  static const auto* const words = new RE2(
      "(?:^|[: ])['\"\\x{2018}]?"                                                // a quote
      "([^ :'\"\\x{2018}\\x{2019}][^:'\"\\x{2018}\\x{2019}]*)['\"\\x{2019}]?: "  // NAME
      "(?:[^:]*: bad interpreter: )?"
      "(?:command not found|not found|No such file or directory|Permission denied|"
      "Exec format error|cannot execute[^:]*|Is a directory)[^:]*$");
  return *words;
}

const RE2& PythonsWords() {
  static const auto* const words = new RE2("can't open file '([^']+)': \\[Errno \\d+\\]");
  return *words;
}

// Python gives the whole path of a file that the command names by a part of it.
bool Names(absl::string_view command_text, absl::string_view program) {
  // Within quotes of the command's.
  if (absl::StrContains(program, ' ')) return absl::StrContains(command_text, program);
  const std::vector<absl::string_view> words =
      absl::StrSplit(command_text, absl::ByAnyChar(" \t\n'\";&|()="), absl::SkipEmpty());
  return std::any_of(words.begin(), words.end(), [program](absl::string_view word) {
    return word == program || absl::EndsWith(program, absl::StrCat("/", word));
  });
}

}  // namespace

std::string WhyNotStarted(int exit_status, absl::string_view output,
                          absl::string_view command_text) {
  const bool by_shell = exit_status == kNotExecutable || exit_status == kNotFound;
  if (!by_shell && exit_status != kPythonsStatus) return "";
  const std::vector<std::string> lines = absl::StrSplit(output, '\n', absl::SkipEmpty());
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    std::string program;
    const RE2& pattern = by_shell ? ShellsWords() : PythonsWords();
    if (RE2::PartialMatch(*line, pattern, &program) && Names(command_text, program)) return *line;
  }
  return "";
}

}  // namespace hpo::command
