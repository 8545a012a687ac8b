#include "worker/agent/session/study_command.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/status.h"
#include "common/command_line/shell_word.h"
#include "worker/command/command_template.h"

namespace hpo {
namespace {

std::string CommandOf(const StudyData& study) {
  const std::string command = ShellCommand(study.command);
  if (study.workdir.empty()) return command;
  // A text may have several commands.
  const char* const then = TextOf(study.command) ? " || exit\n" : " && ";
  return absl::StrCat("cd ", ShellCommand({study.workdir}), then, command);
}

absl::StatusOr<std::optional<StudyCommand>> OnlyCommand(const std::vector<StudyData>& studies) {
  std::vector<std::string> names;
  std::optional<StudyCommand> found;
  for (const StudyData& study : studies) {
    if (study.command.empty()) continue;
    names.push_back(study.study);
    found = StudyCommand{.study = study.study, .command = CommandOf(study)};
  }
  if (names.size() <= 1) return found;
  return absl::InvalidArgumentError(
      absl::StrCat("--allow-commands: expected one study with a command, got ",
                   absl::StrJoin(names, ", "), "; give --study NAME"));
}

}  // namespace

absl::StatusOr<std::optional<StudyCommand>> FindStudyCommand(CoordinatorClient& client,
                                                             const std::vector<std::string>& served,
                                                             absl::Duration timeout, Backoff pauses,
                                                             StopSignal& stop) {
  const absl::Time deadline = absl::Now() + timeout;
  for (;;) {
    absl::StatusOr<std::vector<StudyData>> studies = client.ListStudyData();
    if (studies.ok()) {
      std::erase_if(*studies, [&served](const StudyData& study) {
        return !served.empty() &&
               std::find(served.begin(), served.end(), study.study) == served.end();
      });
      if (!studies->empty()) return OnlyCommand(*studies);
    }
    if (absl::Now() >= deadline) {
      HPO_RETURN_IF_ERROR(studies.status());
      // Nothing runs: what follows ends, or waits, as any other worker.
      return std::optional<StudyCommand>();
    }
    if (stop.WaitFor(pauses.Next())) return absl::CancelledError("told to stop");
  }
}

}  // namespace hpo
