// Tested by tests/cli/program/program_test.cc.
#include "cli/commands/worker_group.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/client/terminal.h"
#include "cli/render/json.h"
#include "cli/render/study_text.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

constexpr char kWorkerExamples[] = R"(
  hpo worker drain slurm-17_3             it finishes its trial, gets no more, and ends
  hpo worker drain --all --now            trials are saved and requeued; all workers end
  hpo worker resume --all
)";

absl::Status ListWorkers(Session& session) {
  HPO_ASSIGN_OR_RETURN(const std::vector<WorkerStatus> workers,
                       session.client.fleet().ListWorkers());
  if (session.json) {
    PrintJson(WorkersJson(workers), session.out);
  } else if (workers.empty()) {
    session.out << "no worker has registered since the server started\n";
  } else {
    session.out << RenderWorkers(workers, session.terminal.columns, session.terminal.colors);
  }
  return absl::OkStatus();
}

absl::Status Report(Session& session, const std::vector<std::string>& names, const char* done,
                    const char* none) {
  if (session.json) {
    PrintJson(nlohmann::ordered_json{{"workers", names}}, session.out);
    return absl::OkStatus();
  }
  for (const std::string& name : names) session.out << Printable(name) << ": " << done << "\n";
  if (names.empty()) session.out << none << "\n";
  return absl::OkStatus();
}

absl::Status CheckChoice(const WorkerChoice& choice) {
  if (choice.names.empty() == choice.all) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("expected the workers' names or --all, got ", choice.all ? "both" : "neither"));
}

void AddChoice(CLI::App& command, WorkerChoice& choice, const char* all) {
  command.add_option("names", choice.names, "Name of a worker, as hpo worker list prints it")
      ->type_name("NAME");
  command.add_flag("--all", choice.all, all);
}

Action DeclareDrain(CLI::App& drain, std::string& /*study*/) {
  struct Values {
    WorkerChoice choice;
    bool now = false;
  };
  const auto values = std::make_shared<Values>();
  AddChoice(drain, values->choice, "Every worker that is alive");
  drain.add_flag("--now", values->now, "Save and requeue the trials that they run");
  return Plain([values](Session& session) -> absl::Status {
    HPO_RETURN_IF_ERROR(CheckChoice(values->choice));
    HPO_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                         session.client.fleet().DrainWorkers(values->choice, values->now));
    return Report(session, names, "gets no more trials, and ends", "no worker is alive");
  });
}

Action DeclareResume(CLI::App& resume, std::string& /*study*/) {
  const auto choice = std::make_shared<WorkerChoice>();
  AddChoice(resume, *choice, "Every worker that is drained");
  return Plain([choice](Session& session) -> absl::Status {
    HPO_RETURN_IF_ERROR(CheckChoice(*choice));
    HPO_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                         session.client.fleet().ResumeWorkers(*choice));
    return Report(session, names, "gets trials again; start it where it has ended",
                  "no worker is drained");
  });
}

}  // namespace

Command WorkerGroup() {
  using enum Access;
  return {.name = "worker",
          .help = "List workers, and end them after their trials",
          .examples = kWorkerExamples,
          .commands = {
              {"list", "List the workers, their devices and what they run", kChanges,
               WithoutOptions(Plain(ListWorkers))},
              {"drain", "Give workers no more trials, so that they end with status 0", kChanges,
               DeclareDrain},
              {"resume", "Give drained workers trials again", kChanges, DeclareResume},
          }};
}

}  // namespace hpo::cli
