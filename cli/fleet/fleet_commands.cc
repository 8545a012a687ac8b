// Tested by tests/cli/fleet/fleet_group_test.cc.
#include "cli/fleet/fleet_commands.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/client/terminal.h"
#include "cli/fleet/engines/engine_steps.h"
#include "cli/fleet/engines/fleet_files.h"
#include "cli/fleet/fleet_report.h"
#include "cli/render/json.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kUsualName[] = "workers";
constexpr Bytes kLeastMemory = MiB(16);

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<absl::Duration> DurationOf(absl::string_view option, const std::string& text) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration >= absl::ZeroDuration()) return duration;
  return Unexpected(option, "a duration such as 90m or 8h", absl::StrCat("'", text, "'"));
}

// Slurm takes --mem=0 for all memory of a node.
absl::StatusOr<Bytes> MemoryOf(const std::string& text) {
  const absl::StatusOr<Bytes> memory = ParseBytes(text);
  HPO_RETURN_IF_ERROR(Annotate(memory.status(), "--memory"));
  if (*memory >= kLeastMemory) return *memory;
  return Unexpected(
      "--memory",
      absl::StrCat("at least ", FormatBytes(kLeastMemory), ", with a unit, such as 32GiB"),
      absl::StrCat("'", text, "'"));
}

std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.lexically_normal().string();
}

// In the order of tls::JoinSource.
FleetServer ServerOf(const std::string& address, absl::string_view join) {
  FleetServer server;
  if (absl::ConsumePrefix(&join, "file:")) {
    server.join_file = std::string(join);
  } else {
    server.join = join.empty() ? Variable("HPO_JOIN") : std::string(join);
    if (server.join.empty()) server.join_file = Variable("HPO_JOIN_FILE");
  }
  if (!server.join_file.empty()) server.join_file = Absolute(server.join_file);
  if (server.join.empty() && server.join_file.empty()) server.address = address;
  return server;
}

bool RunsPrograms(const FleetPlan& plan) {
  return std::any_of(plan.worker_options.begin(), plan.worker_options.end(),
                     [](const std::string& word) {
                       return word == "--allow-commands" || word == "--trainer" ||
                              absl::StartsWith(word, "--trainer=");
                     });
}

// That studies name a program that the workers may not run. Empty: none does, or the server cannot
// be asked, as with a token of the role `work`.
std::string NoteOnCommands(Client& client, const FleetPlan& plan) {
  if (RunsPrograms(plan)) return "";
  std::vector<std::string> names;
  const auto studies = client.studies().ListStudies();
  if (!studies.ok()) return "";
  for (const StudyStatus& study : *studies) {
    const bool is_served = plan.study.empty() || plan.study == study.spec.name;
    if (is_served && !study.spec.trainer.command.empty()) names.push_back(study.spec.name);
  }
  if (names.empty()) return "";
  return absl::StrCat(
      names.size() == 1 ? "study " : "studies ", absl::StrJoin(names, ", "),
      names.size() == 1 ? " names" : " name",
      " a program (trainer.command), which workers run only with --allow-commands: end the command "
      "with -- --allow-commands");
}

void PrintSubmission(Session& session, const FleetEngine& engine, const FleetPlan& plan,
                     const SubmittedFleet& submitted) {
  if (session.json) {
    PrintJson(Json{{"engine", engine.name()},
                   {"name", plan.name},
                   {"label", FleetLabel(plan.name)},
                   {"id", submitted.id},
                   {"workers", plan.workers},
                   {"script", submitted.kept},
                   {"notes", submitted.notes}},
              session.out);
    return;
  }
  session.out << "submitted fleet " << plan.name << " to " << engine.name() << ": " << submitted.id
              << ", with " << WorkersText(static_cast<size_t>(plan.workers)) << "\n"
              << "script: " << Printable(submitted.kept) << "\n"
              << "to see its workers: hpo fleet status " << plan.name << "\n"
              << "to end it: hpo fleet stop " << plan.name << "\n";
  for (const std::string& note : submitted.notes) {
    session.out << "note: " << Printable(note) << "\n";
  }
}

}  // namespace

absl::StatusOr<FleetPlan> MakePlan(const FleetOptions& options, const std::string& address,
                                   const std::string& study, const std::string& join) {
  FleetPlan plan = options.plan;
  plan.study = study;
  if (plan.name.empty()) plan.name = study.empty() ? kUsualName : FleetNameOf(study);
  // --setup with a text of several lines is each of them.
  if (!plan.setup.empty()) plan.setup = absl::StrSplit(absl::StrJoin(plan.setup, "\n"), '\n');
  if (!options.partition.empty()) {
    plan.engine_options.insert(plan.engine_options.begin(), "--partition=" + options.partition);
  }
  if (!options.time.empty()) {
    HPO_ASSIGN_OR_RETURN(plan.time, DurationOf("--time", options.time));
  }
  if (!options.memory.empty()) {
    HPO_ASSIGN_OR_RETURN(plan.memory_per_worker, MemoryOf(options.memory));
  }
  if (plan.checkpoints.empty() && !plan.claim.empty()) {
    plan.checkpoints = absl::StrCat(kSharedFolder, "/checkpoints");
  }
  if (!plan.checkpoints.empty() && plan.checkpoints != "none") {
    plan.checkpoints = Absolute(plan.checkpoints);
  }
  plan.server = ServerOf(address, join);
  plan.folder = FleetFolder(plan.name);
  HPO_RETURN_IF_ERROR(CheckPlan(plan));
  return plan;
}

absl::Status StartFleet(Session& session, FleetEngine& engine, const FleetOptions& options,
                        const Notifies& notify) {
  HPO_ASSIGN_OR_RETURN(const FleetPlan plan,
                       MakePlan(options, session.client.address(), session.study, session.join));
  const std::string note = NoteOnCommands(session.client, plan);
  if (!options.submit) {
    HPO_ASSIGN_OR_RETURN(const std::string script, engine.Script(plan));
    session.out << script;
    if (!note.empty()) notify("note: " + note);
    return absl::OkStatus();
  }
  HPO_ASSIGN_OR_RETURN(SubmittedFleet submitted, engine.Submit(plan));
  if (!note.empty()) submitted.notes.push_back(note);
  PrintSubmission(session, engine, plan, submitted);
  return absl::OkStatus();
}

absl::Status ShowFleet(Session& session, FleetEngine& engine, const std::string& name) {
  if (!name.empty()) HPO_RETURN_IF_ERROR(CheckFleetName(name));
  HPO_ASSIGN_OR_RETURN(const std::vector<NamedWorker> workers, engine.List(name));
  if (workers.empty() && !name.empty()) {
    const std::string end = engine.HowItEnded(name).value_or("");
    return absl::NotFoundError(
        absl::StrCat("no worker of fleet ", name, " waits or runs on ", engine.name(), "; ",
                     end.empty() ? "hpo fleet status lists the fleets" : end));
  }
  if (session.json) {
    PrintJson(FleetJson(engine.name(), workers), session.out);
  } else if (workers.empty()) {
    session.out << "no fleet on " << engine.name() << "\n";
  } else {
    session.out << FleetText(engine.name(), workers, !name.empty(), session.terminal.columns);
  }
  return absl::OkStatus();
}

absl::Status ScaleFleet(Session& session, FleetEngine& engine, const std::string& name,
                        int workers) {
  HPO_RETURN_IF_ERROR(CheckFleetName(name));
  HPO_ASSIGN_OR_RETURN(const std::string done, engine.Scale(name, workers));
  if (session.json) {
    PrintJson(Json{{"engine", engine.name()}, {"name", name}, {"workers", workers}, {"done", done}},
              session.out);
  } else {
    session.out << "fleet " << name << ": " << done << "\n";
  }
  return absl::OkStatus();
}

absl::Status StopFleet(Session& session, FleetEngine& engine, const std::string& name,
                       const std::string& patience) {
  HPO_RETURN_IF_ERROR(CheckFleetName(name));
  HPO_ASSIGN_OR_RETURN(const absl::Duration longest, DurationOf("--wait", patience));
  HPO_RETURN_IF_ERROR(engine.Stop(name, longest));
  if (session.json) {
    PrintJson(Json{{"engine", engine.name()}, {"name", name}, {"workers", 0}}, session.out);
  } else {
    session.out << "fleet " << name << " has ended: no worker is left\n";
  }
  return absl::OkStatus();
}

}  // namespace hpo::cli
