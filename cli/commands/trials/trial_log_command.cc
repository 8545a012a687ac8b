// Tested by tests/integration/terminal/test_terminal.py.
#include "cli/commands/trials/trial_log_command.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/client/terminal.h"
#include "cli/render/json.h"
#include "cli/render/wording.h"
#include "common/base/status.h"
#include "common/command_line/terminal_text.h"
#include "common/files/read_file.h"
#include "common/files/user_folder.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<Attempt> ChooseAttempt(const Trial& trial, std::optional<int64_t> wanted) {
  if (trial.attempts.empty()) {
    return absl::NotFoundError(absl::StrCat("trial ", Hash(trial.id.number), " of ", trial.id.study,
                                            " was never started: it has no log"));
  }
  if (!wanted) return trial.attempts.back();
  for (const Attempt& attempt : trial.attempts) {
    if (attempt.number.value == *wanted) return attempt;
  }
  return absl::NotFoundError(
      absl::StrCat("--attempt: expected 1 to ", trial.attempts.size(), ", got ", *wanted));
}

// Folders below which the workers of this machine may have left their files: the one that is named;
// else that of `hpo run`, which lies beside the database, and their usual one.
absl::StatusOr<std::vector<fs::path>> StateFolders(Session& session, const std::string& named) {
  if (!named.empty()) return std::vector<fs::path>{named};
  const std::string state = UserFolder("XDG_STATE_HOME", ".local/state");
  std::vector<fs::path> usual;
  if (!state.empty()) usual.emplace_back(state + "/hpo/worker");
  std::string database = session.database;
  if (database.empty()) {
    HPO_ASSIGN_OR_RETURN(const ServerStatus server, session.client.GetServer());
    database = server.database;
  }
  std::error_code error;
  const fs::path folder = fs::absolute(database, error).parent_path();
  if (!database.empty() && !error) usual.insert(usual.begin(), folder / "worker");
  return usual;
}

// Below any of the workers' folders; only the one that ran the attempt has it. As
// worker/agent/attempt/trainer_job.cc names it.
absl::StatusOr<fs::path> FindLog(const std::vector<fs::path>& folders, const TrialId& trial,
                                 const Attempt& attempt) {
  const std::string below =
      absl::StrFormat("runs/%s/%06d-%d/trainer.log", absl::StrReplaceAll(trial.study, {{"/", "_"}}),
                      trial.number.value, attempt.number.value);
  std::vector<std::string> expected;
  for (const fs::path& state : folders) {
    std::error_code error;
    for (const fs::directory_entry& worker : fs::directory_iterator(state, error)) {
      if (fs::exists(worker.path() / below, error)) return worker.path() / below;
    }
    expected.push_back((state / "*" / below).string());
  }
  return absl::NotFoundError(
      absl::StrCat("trial ", Hash(trial.number), " of ", trial.study, " ran on worker ",
                   attempt.worker, ": expected its log as ", absl::StrJoin(expected, " or "),
                   ", found none; ask on that machine, or say the worker's --state-dir"));
}

// What an attempt's program printed.
struct ProgramOutput {
  std::string path;  // of the whole log; empty: `text` is its tail, which the server keeps
  std::string text;
};

absl::StatusOr<ProgramOutput> FindOutput(Session& session, const TrialLogOptions& options,
                                         const TrialId& trial, const Attempt& attempt) {
  HPO_ASSIGN_OR_RETURN(const std::vector<fs::path> folders,
                       StateFolders(session, options.state_dir));
  const absl::StatusOr<fs::path> path = FindLog(folders, trial, attempt);
  const bool falls_back = options.state_dir.empty() && !attempt.log_tail.empty();
  if (!path.ok() && falls_back) return ProgramOutput{.path = "", .text = attempt.log_tail};
  HPO_RETURN_IF_ERROR(path.status());
  HPO_ASSIGN_OR_RETURN(std::string text, ReadFile(path->string()));
  return ProgramOutput{.path = path->string(), .text = std::move(text)};
}

// Above the tail, which the reader would else take for all.
std::string TailNotice(const Attempt& attempt) {
  return absl::StrCat(
      "These are the last lines that the server keeps; the whole log is on the "
      "machine of worker ",
      attempt.worker, ", where hpo trial logs shows it:");
}

}  // namespace

absl::Status ShowTrialLog(Session& session, const TrialLogOptions& options) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  HPO_ASSIGN_OR_RETURN(const TrialView view,
                       session.client.trials().GetTrial(study.spec.name, options.number));
  HPO_ASSIGN_OR_RETURN(const Attempt attempt, ChooseAttempt(view.trial, options.attempt));
  HPO_ASSIGN_OR_RETURN(const ProgramOutput output,
                       FindOutput(session, options, view.trial.id, attempt));
  const std::string& text = output.text;
  const bool is_tail = output.path.empty();
  if (session.json) {
    PrintJson({{"trial", options.number.value},
               {"attempt", attempt.number.value},
               {"worker", attempt.worker},
               {"path", is_tail ? nlohmann::ordered_json() : nlohmann::ordered_json(output.path)},
               {"is_tail", is_tail},
               {"text", absl::StrReplaceAll(text, {{std::string(1, '\0'), ""}})}},
              session.out);
    return absl::OkStatus();
  }
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  if (is_tail) session.out << TailNotice(attempt) << "\n";
  const PrintedColors colors =
      session.terminal.colors ? PrintedColors::kKept : PrintedColors::kLeftOut;
  for (const absl::string_view line : lines) session.out << ShownLine(line, colors) << "\n";
  if (lines.empty()) session.out << output.path << " is empty: the program printed nothing\n";
  return absl::OkStatus();
}

}  // namespace hpo::cli
