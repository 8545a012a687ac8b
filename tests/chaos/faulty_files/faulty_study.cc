#include "tests/chaos/faulty_files/faulty_study.h"

#include <sqlite3.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/studies/trial_writer.h"
#include "tests/chaos/simulation/simulated_server.h"
#include "tests/chaos/simulation/trial_ledger.h"

namespace hpo {
namespace {

constexpr server::LeasePolicy kLease{.ttl = absl::Seconds(60)};
// More than a worker beats in half a TTL: nobody loses a lease by it.
constexpr int kMostTries = 12;
constexpr int kHealedAfter = 5;
constexpr int64_t kMeasurements = 40;

StudySpec Study(int64_t trials) {
  StudySpec spec;
  spec.name = "faulty";
  spec.objectives = {Objective{.metric = "score", .direction = Direction::kMaximize}};
  spec.trainer.task = "custom";
  spec.budget.trials = trials;
  spec.sampler.type = "random";
  spec.space.parameters = {Parameter{
      .name = "x", .domain = IntDomain{.low = 1, .high = 1000}, .when = {}, .default_value = {}}};
  return spec;
}

WorkerFacts Facts() {
  WorkerFacts facts;
  facts.worker = "worker";
  facts.instance_key = "worker-1";
  facts.trainer = "simulated";
  facts.plans = false;
  facts.device.kind = "cpu";
  facts.device.name = "simulated";
  facts.capacity = GiB(8);
  return facts;
}

// For each connection that opens: with a cache of a few pages SQLite writes in the middle of a
// transaction.
int KeepFewPages(sqlite3* connection, const char**, const sqlite3_api_routines*) {
  return sqlite3_exec(connection, "PRAGMA cache_size = 4; PRAGMA cache_spill = 4", nullptr, nullptr,
                      nullptr);
}

using Extension = void (*)();
Extension AsExtension(int (*entry)(sqlite3*, const char**, const sqlite3_api_routines*)) {
  return reinterpret_cast<Extension>(entry);
}

class FaultyStudy {
 public:
  explicit FaultyStudy(const FaultyStudyOptions& options) : options_(options) {}

  absl::Status Run() {
    vfs_.Fail(options_.fault);
    HPO_ASSIGN_OR_RETURN(server_, SimulatedServer::Start(kLease, [this](const absl::Status&) {
                           NoteFailedCall();
                           return num_failed_calls_ < kMostTries;
                         }));
    HPO_RETURN_IF_ERROR(Try("add the study", [this] {
      return scheduler().commands().CreateStudy(Study(options_.num_trials), false, "").status();
    }));
    HPO_RETURN_IF_ERROR(Try("register", [this] { return Register(); }));
    for (int64_t trial = 0; trial < options_.num_trials; ++trial) {
      HPO_RETURN_IF_ERROR(RunTrial(trial));
    }
    vfs_.Heal();
    HPO_RETURN_IF_ERROR(server_->scheduler().sweeper().Tick());
    HPO_RETURN_IF_ERROR(Audit());
    return server_->Restart();
  }

  int64_t num_failed_operations() const { return vfs_.NumFailed(); }
  int64_t num_failed_calls() const { return num_failed_calls_; }

 private:
  server::TrialScheduler& scheduler() { return server_->scheduler(); }
  absl::Duration Now() { return server_->clock().Monotonic(); }

  void NoteFailedCall() {
    if (++num_failed_calls_ >= kHealedAfter) vfs_.Heal();
  }

  // Repeats `call` until it is answered. A lost session is registered again, as a worker does.
  absl::Status Try(const std::string& what, const std::function<absl::Status()>& call) {
    absl::Status answer;
    for (int tries = 0; tries < kMostTries; ++tries) {
      answer = call();
      if (answer.ok()) return answer;
      NoteFailedCall();
      if (absl::IsNotFound(answer)) Register().IgnoreError();
      server_->clock().Advance(absl::Seconds(1));
    }
    return absl::InternalError(absl::StrCat(what, " is refused for ever: ", answer.ToString()));
  }

  absl::Status Register() {
    HPO_ASSIGN_OR_RETURN(const Registration registered,
                         scheduler().sessions().RegisterWorker(Facts()));
    session_ = registered.session;
    return absl::OkStatus();
  }

  absl::Status RunTrial(int64_t index) {
    const std::string ask_id = absl::StrCat("ask-", index);
    HPO_RETURN_IF_ERROR(Try("ask", [&] { return Ask(ask_id); }));
    HPO_RETURN_IF_ERROR(Try("report", [&] { return Report(); }));
    server_->clock().Advance(absl::Seconds(10));
    HPO_RETURN_IF_ERROR(Try("beat", [&] { return Beat(); }));
    // A tick may fail as any other call, and is repeated by time.
    if (!scheduler().sweeper().Tick().ok()) ++num_failed_calls_;
    const std::string tell_id = absl::StrCat("tell-", index);
    return Try("finish", [&] { return Finish(tell_id, static_cast<double>(index)); });
  }

  absl::Status Ask(const std::string& request_id) {
    HPO_ASSIGN_OR_RETURN(const AcquireResult asked,
                         scheduler().dispatcher().AcquireTrial(
                             session_, request_id, absl::ZeroDuration(), GiB(8), nullptr));
    if (!asked.assignment) {
      return absl::UnavailableError(absl::StrCat("no trial: ", asked.waiting_for));
    }
    lease_ = asked.assignment->lease;
    return ledger_.Assigned(lease_, Facts(), Now());
  }

  absl::Status Report() {
    AttemptReport report{.lease = lease_};
    for (int64_t step = 1; step <= kMeasurements; ++step) {
      report.measurements.push_back(Measurement{
          .step = step, .epoch = 1.0, .metrics = {{"score", static_cast<double>(step)}}});
    }
    HPO_RETURN_IF_ERROR(scheduler().results().ReportMeasurements(report).status());
    return ledger_.Beat(lease_, Directive::kContinue, Now());
  }

  absl::Status Beat() {
    HPO_ASSIGN_OR_RETURN(
        const HeartbeatResult beat,
        scheduler().sessions().Heartbeat(session_, {LeaseBeat{.lease = lease_}}, GiB(8)));
    return ledger_.Beat(lease_, beat.directives.front(), Now());
  }

  absl::Status Finish(const std::string& request_id, double score) {
    FinishRequest request{.lease = lease_,
                          .outcome = Completed{.metrics = {{"score", score}}, .model_path = ""}};
    HPO_ASSIGN_OR_RETURN(const FinishResult finished,
                         scheduler().results().FinishTrial(request_id, request));
    if (!finished.stored) return absl::OkStatus();
    return ledger_.Finished(request, finished);
  }

  absl::Status Audit() {
    HPO_ASSIGN_OR_RETURN(const server::StudyRuntime* const study,
                         scheduler().state().studies.Find("faulty"));
    std::vector<server::TrialRecord> rows;
    const auto read = [&](const server::StudyRows& stored) -> absl::Status {
      HPO_ASSIGN_OR_RETURN(rows, LoadRows(stored.trials));
      return absl::OkStatus();
    };
    HPO_RETURN_IF_ERROR(server::ReadRows(*scheduler().state().store, *study, read));
    HPO_RETURN_IF_ERROR(ledger_.Audit("faulty", rows, Now()));
    const auto completed = std::count_if(
        rows.begin(), rows.end(),
        [](const server::TrialRecord& row) { return row.trial.state == TrialState::kCompleted; });
    if (completed == options_.num_trials && study->standing().finished) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(completed, " of ", options_.num_trials,
                                            " trials completed, study ",
                                            study->standing().finished ? "finished" : "open"));
  }

  const FaultyStudyOptions options_;
  server::FaultyVfs vfs_;
  TrialLedger ledger_{LedgerOptions{.lease = kLease, .answers_may_be_lost = true}};
  std::unique_ptr<SimulatedServer> server_;  // closes its files before the faults go
  std::string session_;
  LeaseRef lease_;
  int64_t num_failed_calls_ = 0;
};

}  // namespace

FaultyStudyResult RunFaultyStudy(const FaultyStudyOptions& options) {
  if (options.small_cache) sqlite3_auto_extension(AsExtension(&KeepFewPages));
  FaultyStudyResult result;
  {
    FaultyStudy study(options);
    result.status = study.Run();
    result.num_failed_operations = study.num_failed_operations();
    result.num_failed_calls = study.num_failed_calls();
  }
  if (options.small_cache) sqlite3_cancel_auto_extension(AsExtension(&KeepFewPages));
  return result;
}

}  // namespace hpo
