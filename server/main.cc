// hpo-server: see server/server_options.cc for its options, docs/ARCHITECTURE.md for its place.
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/command_line/end_with.h"
#include "common/command_line/exit_status.h"
#include "common/command_line/shell_word.h"
#include "common/command_line/standard_streams.h"
#include "common/command_line/temporary_folder.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "common/study_file/study_file.h"
#include "server/coordinator.h"
#include "server/health_log.h"
#include "server/server_options.h"
#include "server/storage/sqlite/copy_database.h"
#include "server/storage/sqlite/migrations.h"
#include "server/storage/sqlite/restore_database.h"
#include "server/termination_signal.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

constexpr absl::Duration kLookInterval = absl::Seconds(1);
// Calls in flight at the end are short: long polls and watches have been answered.
constexpr absl::Duration kDrainGrace = absl::Seconds(10);

// The allocator gives threads up to eight heaps a processor, and each keeps what its threads freed
// in pieces: after 20,000 trials on two processors 10 of 41 MB, with two heaps 2 of 32.
void KeepToFewHeaps() { ::mallopt(M_ARENA_MAX, 2); }

int Fail(const absl::Status& status) {
  std::cerr << "hpo-server: " << status.message() << "\n";
  // Unavailable is the clients' word for a server that is away; here it is a port in use.
  return absl::IsUnavailable(status) ? kExitFailure : ExitStatusOf(status);
}

std::string DescribeStudy(const StudyStatus& study) {
  const std::optional<int64_t> budget = study.spec.budget.trials;
  return absl::StrCat(study.spec.name, " (", study.counts.Finished(),
                      budget ? absl::StrCat(" of ", *budget) : "", " trials)");
}

std::string Banner(Coordinator& coordinator, const ServerOptions& options) {
  const std::vector<StudyStatus> known =
      coordinator.studies().queries().ListStudies().value_or(std::vector<StudyStatus>());
  const std::string studies =
      absl::StrJoin(known, ", ", [](std::string* out, const StudyStatus& study) {
        absl::StrAppend(out, DescribeStudy(study));
      });
  const std::string metrics = coordinator.metrics_url();
  const std::string page = coordinator.page_url();
  return absl::StrCat(
      "hpo-server ", std::string(Version()), " listening on ", coordinator.address(), ", database ",
      options.database, ", studies: ", studies.empty() ? "none" : studies,
      metrics.empty() ? "" : ", metrics at ", metrics, page.empty() ? "" : ", page at ", page);
}

// How other machines reach the server; empty: they cannot.
std::string JoinLines(const Coordinator& coordinator) {
  const std::string file = coordinator.join_file();
  if (file.empty()) return "";
  const absl::StatusOr<std::string> line = ReadFile(file);
  return absl::StrCat(
      "other machines reach the server by TLS and a token. To start a worker on one of them:\n\n  ",
      line.ok() ? *line : absl::StrCat(line.status().message(), "\n"), "\nThis line is also in ",
      file, "; other files join-NAME in its folder are for people.\n");
}

// In capitals: whoever starts it so should see it in any log.
void WarnIfInsecure(const ServerOptions& options) {
  if (!options.security.insecure) return;
  std::vector<ListenAddress> all = options.also_listen;
  all.insert(all.begin(), options.listen);
  for (const ListenAddress& address : all) {
    if (!NeedsTls(address, /*on_loopback=*/false)) continue;
    spdlog::warn(
        "INSECURE: PLAINTEXT WITHOUT TOKENS AT {}. EVERYBODY WHO CAN CONNECT CAN RUN ANY PROGRAM "
        "ON YOUR WORKERS.",
        FormatListenAddress(address));
  }
}

// Says once, for each study, what it waits for or why it failed, and again when that changes.
class WaitingLog {
 public:
  void Look(const std::vector<StudyStatus>& studies) {
    for (const StudyStatus& study : studies) {
      if (std::string& said = failed_[study.spec.name]; study.failure != said) {
        said = study.failure;
        if (!said.empty()) spdlog::error("study {} failed: {}", study.spec.name, said);
      }
      std::string& said = said_[study.spec.name];
      if (study.waiting_for == said) continue;
      said = study.waiting_for;
      const char* const what = study.finished ? "has ended" : "waits";
      if (!said.empty()) spdlog::info("study {} {}: {}", study.spec.name, what, said);
    }
  }

 private:
  std::map<std::string, std::string> said_;
  std::map<std::string, std::string> failed_;
};

// kExitStudyFailed where failures ended one of the studies that the server was started for.
// `options.studies` names what `started` was read from.
int StatusOfStudies(Coordinator& coordinator, const std::vector<StudySpec>& started,
                    const ServerOptions& options) {
  int status = kExitOk;
  for (size_t i = 0; i < started.size(); ++i) {
    const StudySpec& spec = started[i];
    const absl::StatusOr<StudyStatus> study = coordinator.studies().queries().GetStudy(spec.name);
    if (!study.ok() || study->failure.empty()) continue;
    std::cerr << "hpo-server: study " << spec.name << " failed: " << study->failure
              << "\nto go on: hpo-server --resume --study " << ShellWord(options.studies[i])
              << (options.overrides.name ? " --name " + ShellWord(spec.name) : "") << " --db "
              << ShellWord(options.database) << " --listen " << coordinator.address() << "\n";
    status = kExitStudyFailed;
  }
  return status;
}

// Workers leave by themselves once all is finished. One that has missed two heartbeats has left.
bool AllFinishedAndAlone(const std::vector<StudyStatus>& studies, absl::Time now,
                         absl::Duration lease_ttl) {
  const absl::Duration silence = 2 * HeartbeatInterval(LeasePolicy{.ttl = lease_ttl});
  for (const StudyStatus& study : studies) {
    if (!study.finished) return false;
    for (const WorkerStatus& worker : study.workers) {
      if (worker.alive && now - worker.last_heartbeat < silence) return false;
    }
  }
  return !studies.empty();
}

// Serves until a signal, or until all is done where that was asked for.
void ServeUntilOver(Coordinator& coordinator, const ServerOptions& options,
                    const TerminationSignal& signals, const Clock& clock) {
  WaitingLog waiting;
  do {
    coordinator.LookAtHealth();
    const absl::StatusOr<std::vector<StudyStatus>> studies =
        coordinator.studies().queries().ListStudies();
    if (!studies.ok()) continue;  // the health log says why
    waiting.Look(*studies);
    const bool may_end =
        options.exit_when_finished && AllFinishedAndAlone(*studies, clock.Now(), options.lease_ttl);
    if (may_end) return;
  } while (!signals.WaitFor(kLookInterval));
}

// Restores a backup and is done.
absl::StatusOr<int> Restore(const ServerOptions& options) {
  HPO_ASSIGN_OR_RETURN(const RestoredDatabase restored,
                       RestoreDatabase(options.restore, options.database));
  std::cout << "restored " << options.database << " from " << options.restore;
  if (!restored.kept_as.empty()) std::cout << "; what was there is now " << restored.kept_as;
  std::cout << std::endl;
  return kExitOk;
}

absl::StatusOr<std::vector<StudySpec>> LoadStudies(const ServerOptions& options) {
  std::vector<StudySpec> studies;
  for (const std::string& name : options.studies) {
    HPO_ASSIGN_OR_RETURN(studies.emplace_back(), LoadStudy(name, options.overrides));
  }
  return studies;
}

// Those that are stored take what their files have changed; the others are created.
absl::Status EditStudies(StudyApi& stored, const std::vector<StudySpec>& studies) {
  for (const StudySpec& study : studies) {
    const absl::StatusOr<StudyStatus> known = stored.queries().GetStudy(study.name);
    if (known.ok()) {
      StudySpec edited = study;
      edited.budget = known->spec.budget;  // an edit leaves it, CreateStudy takes it
      HPO_RETURN_IF_ERROR(stored.EditStudy(study.name, edited).status());
    }
    HPO_RETURN_IF_ERROR(stored.CreateStudy(study, /*validate_only=*/false, RandomId()).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Serve(const ServerOptions& options, const TerminationSignal& signals) {
  CoordinatorOptions coordinator_options{.database = options.database,
                                         .listen = options.listen,
                                         .also_listen = options.also_listen,
                                         .security = options.security};
  coordinator_options.scheduler.lease.ttl = options.lease_ttl;
  coordinator_options.mlflow = options.mlflow;
  coordinator_options.metrics = options.metrics;
  coordinator_options.http = options.http;
  HPO_ASSIGN_OR_RETURN(const std::vector<StudySpec> studies, LoadStudies(options));
  if (!options.edit) coordinator_options.studies = studies;
  const SystemClock clock;
  HealthLog waiting;
  coordinator_options.try_again = [&](const absl::Status& met) {
    if (const auto line = waiting.Look(std::string(met.message()), clock.Monotonic())) {
      spdlog::error("{}", *line);
    }
    return !signals.WaitFor(kLookInterval);
  };
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<Coordinator> coordinator,
                       Coordinator::Start(coordinator_options, clock));
  if (options.edit) HPO_RETURN_IF_ERROR(EditStudies(coordinator->studies(), studies));
  if (options.resume) {
    for (const StudySpec& study : studies) {
      HPO_RETURN_IF_ERROR(
          coordinator->studies().OrderStudy(study.name, StudyOrder::kRun, false).status());
    }
  }
  WarnIfInsecure(options);
  std::cout << Banner(*coordinator, options) << std::endl << JoinLines(*coordinator) << std::flush;
  if (!options.address_file.empty()) {
    HPO_RETURN_IF_ERROR(WriteFileAtomically(options.address_file, coordinator->address() + "\n"));
  }
  ServeUntilOver(*coordinator, options, signals, clock);
  // A Ctrl-C comes twice to the server of hpo --db: by itself and by its parent's end. Whatever
  // comes, a copy is removed.
  if (options.snapshot_of.empty()) signals.ExitOnNext();
  spdlog::info("ending: no further trials are handed out");
  const int status = StatusOfStudies(*coordinator, studies, options);
  coordinator->Drain(kDrainGrace);
  return status;
}

// Serves a temporary copy of a database.
absl::StatusOr<int> RunSnapshot(ServerOptions options, const TerminationSignal& signals) {
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<TemporaryFolder> folder,
                       TemporaryFolder::Create("hpo-snapshot-"));
  options.database = folder->path() + "/hpo.db";
  HPO_ASSIGN_OR_RETURN(const CopiedDatabase copied,
                       CopyDatabase(options.snapshot_of, options.database));
  const int64_t ours = EmbeddedMigrations().back().version;
  if (copied.version < ours) {
    std::cout << "note: "
              << "database " << options.snapshot_of << " has schema version " << copied.version
              << ", and this hpo has " << ours
              << "; a copy is brought up to date and read, and the file stays as it is"
              << std::endl;
  }
  return Serve(options, signals);
}

absl::StatusOr<int> Run(const ServerOptions& options, const TerminationSignal& signals) {
  if (!options.restore.empty()) return Restore(options);
  if (!options.snapshot_of.empty()) return RunSnapshot(options, signals);
  return Serve(options, signals);
}

}  // namespace
}  // namespace hpo::server

int main(int argc, char** argv) {
  hpo::OpenStandardStreams();
  hpo::server::KeepToFewHeaps();
  hpo::server::ServerOptions options;
  if (const auto over = hpo::server::ReadServerOptions(argc, argv, std::cout, std::cerr, options)) {
    return *over;
  }
  if (const absl::Status log = hpo::InitLog(options.log_level, options.log_json); !log.ok()) {
    return hpo::server::Fail(log);
  }
  if (options.end_with) {
    if (const absl::Status parent = hpo::EndWith(*options.end_with); !parent.ok()) {
      return hpo::server::Fail(parent);
    }
  }
  // The database, its copies and a unix socket are for this user alone.
  umask(S_IRWXG | S_IRWXO);
  const hpo::server::TerminationSignal signals;
  const absl::StatusOr<int> status = hpo::server::Run(options, signals);
  return status.ok() ? *status : hpo::server::Fail(status.status());
}
