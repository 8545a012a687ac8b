// Tested by tests/worker/agent/session/served_studies_test.cc.
#include "worker/agent/session/study_command.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/status.h"
#include "common/command_line/shell_word.h"
#include "spdlog/spdlog.h"
#include "worker/agent/session/rpc_reaction.h"
#include "worker/command/command_template.h"

namespace hpo::agent {
namespace {

std::string CommandOf(const StudyData& study) {
  const std::string command = command::ShellCommand(study.command);
  if (study.workdir.empty()) return command;
  // A text may have several commands.
  const char* const then = TextOf(study.command) ? " || exit\n" : " && ";
  return absl::StrCat("cd ", command::ShellCommand({study.workdir}), then, command);
}

absl::StatusOr<std::optional<StudyCommand>> OnlyCommand(const std::vector<StudyData>& studies) {
  std::vector<std::string> names;
  std::optional<StudyCommand> found;
  for (const StudyData& study : studies) {
    if (study.command.empty()) continue;
    names.push_back(study.study);
    found = StudyCommand{.study = study.study,
                         .command = CommandOf(study),
                         .workdir = study.workdir,
                         .gpus = study.gpus};
  }
  if (names.size() <= 1) return found;
  return absl::InvalidArgumentError(
      absl::StrCat("--allow-commands: expected one study with a command, got ",
                   absl::StrJoin(names, ", "), "; give --study NAME"));
}

// Says each thing once, as a worker does that has registered.
class WaitLog {
 public:
  void Away(const std::string& server, const absl::Status& status) {
    if (std::exchange(away_, status.code()) == status.code()) return;
    spdlog::warn("waiting for the server at {}: {}", server, status.ToString());
  }
  void Waits(const std::string& why) {
    away_ = absl::StatusCode::kOk;
    if (std::exchange(waits_, why) != why) spdlog::info("waiting: {}", why);
  }

 private:
  absl::StatusCode away_ = absl::StatusCode::kOk;
  std::string waits_;
};

std::string WhatIsAwaited(const CommandSearch& search, bool all_ended) {
  if (all_ended) return "no study has trials left to run";
  const std::string names = absl::StrJoin(search.served, ", ");
  return absl::StrCat("the server has no study", names.empty() ? "" : " ", names,
                      "; to create one: hpo study create FILE");
}

std::vector<FinishedStudy> TakeEnded(std::vector<StudyData>& studies) {
  std::vector<FinishedStudy> ended;
  for (const StudyData& study : studies) {
    if (study.end) ended.push_back(*study.end);
  }
  std::erase_if(studies, [](const StudyData& study) { return study.end.has_value(); });
  return ended;
}

// Exactly one of the two has elements.
struct FoundStudies {
  std::vector<StudyData> running;  // served
  std::vector<FinishedStudy> ended;
};

// `server`: its last answer.
absl::Status IdleFor(absl::Duration max_idle, const absl::Status& server) {
  const std::string idle =
      absl::StrCat("no trial for ", absl::FormatDuration(max_idle), " (--max-idle)");
  if (server.ok()) return absl::DeadlineExceededError(idle);
  return absl::UnavailableError(absl::StrCat(idle, "; work may remain: ", server.message()));
}

// Waits until a served study runs or all have ended.
absl::StatusOr<FoundStudies> AwaitStudies(CoordinatorClient& client, const CommandSearch& search,
                                          Backoff pauses, StopSignal& stop) {
  const absl::Time deadline = absl::Now() + search.connect_timeout;
  const absl::Time idle_until = absl::Now() + search.max_idle.value_or(absl::InfiniteDuration());
  WaitLog log;
  for (;;) {
    absl::StatusOr<std::vector<StudyData>> studies = client.ListStudyData();
    if (studies.ok()) {
      std::erase_if(*studies, [&search](const StudyData& study) {
        return !search.served.empty() && std::find(search.served.begin(), search.served.end(),
                                                   study.study) == search.served.end();
      });
      std::vector<FinishedStudy> ended = TakeEnded(*studies);
      if (!studies->empty()) return FoundStudies{.running = *std::move(studies)};
      if (!ended.empty() && !search.stay) return FoundStudies{.ended = std::move(ended)};
      log.Waits(WhatIsAwaited(search, !ended.empty()));
    } else {
      if (ReactionTo(Rpc::kListStudies, studies.status(), "") == Reaction::kEnd) {
        return studies.status();
      }
      if (absl::Now() >= deadline) {
        return absl::UnavailableError(absl::StrCat("no answer from ", search.server, " within ",
                                                   absl::FormatDuration(search.connect_timeout),
                                                   ": ", studies.status().message()));
      }
      log.Away(search.server, studies.status());
    }
    const absl::Duration left = idle_until - absl::Now();
    if (left <= absl::ZeroDuration()) return IdleFor(*search.max_idle, studies.status());
    if (stop.WaitFor(std::min(pauses.Next(), left))) return absl::CancelledError("told to stop");
  }
}

}  // namespace

absl::StatusOr<FoundCommand> FindStudyCommand(CoordinatorClient& client,
                                              const CommandSearch& search, Backoff pauses,
                                              StopSignal& stop) {
  HPO_ASSIGN_OR_RETURN(FoundStudies found, AwaitStudies(client, search, std::move(pauses), stop));
  if (found.running.empty()) return FoundCommand{.ended = std::move(found.ended)};
  HPO_ASSIGN_OR_RETURN(std::optional<StudyCommand> command, OnlyCommand(found.running));
  return FoundCommand{.command = std::move(command)};
}

absl::StatusOr<int64_t> FindGpusPerTrial(CoordinatorClient& client, const CommandSearch& search,
                                         Backoff pauses, StopSignal& stop) {
  HPO_ASSIGN_OR_RETURN(const FoundStudies found,
                       AwaitStudies(client, search, std::move(pauses), stop));
  std::optional<int64_t> gpus;
  for (const StudyData& study : found.running) {
    if (gpus.value_or(study.gpus) != study.gpus) {
      spdlog::warn(
          "the studies of this server take different numbers of GPUs for a trial: give --study or "
          "--gpus-per-trial; this worker takes 1");
      return 1;
    }
    gpus = study.gpus;
  }
  return gpus.value_or(1);
}

}  // namespace hpo::agent
