#include "server/api/worker_api.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/protocol/refusal.h"
#include "server/scheduler/trial_scheduler.h"

namespace hpo::server {
namespace {

absl::Status CheckSize(absl::string_view what, Bytes size) {
  if (size.count >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": expected at least 0 bytes, got ", size.count));
}

}  // namespace

absl::StatusOr<Registration> WorkerApi::RegisterWorker(const WorkerFacts& facts,
                                                       const std::string& predecessor) {
  if (facts.worker.empty()) return absl::InvalidArgumentError("worker: expected a name, got none");
  if (facts.instance_key.empty()) {
    return absl::InvalidArgumentError("instance_key: expected a random text, got none");
  }
  HPO_RETURN_IF_ERROR(CheckSize("capacity_bytes", facts.capacity));
  if (scheduler_.state().work.draining()) {
    return absl::UnavailableError("hpo-server is shutting down; try again soon");
  }
  return scheduler_.sessions().RegisterWorker(facts, predecessor);
}

absl::StatusOr<AcquireResult> WorkerApi::AcquireTrial(const std::string& session,
                                                      const std::string& request_id,
                                                      absl::Duration wait, Bytes capacity,
                                                      const std::function<bool()>& cancelled) {
  HPO_RETURN_IF_ERROR(CheckSize("capacity_bytes", capacity));
  return scheduler_.dispatcher().AcquireTrial(session, request_id, wait, capacity, cancelled);
}

absl::StatusOr<HeartbeatResult> WorkerApi::Heartbeat(const std::string& session,
                                                     const std::vector<LeaseBeat>& beats,
                                                     Bytes capacity, const std::string& notice,
                                                     Goodbye goodbye) {
  HPO_RETURN_IF_ERROR(CheckSize("capacity_bytes", capacity));
  return scheduler_.sessions().Heartbeat(session, beats, capacity, notice, goodbye);
}

absl::Status WorkerApi::Attend(const std::string& session) {
  return scheduler_.state().workers.Attend(session);
}

void WorkerApi::StopAttending(const std::string& session) {
  scheduler_.state().workers.StopAttending(session);
}

absl::StatusOr<ReportResult> WorkerApi::ReportMeasurements(const AttemptReport& report) {
  for (const Measurement& measurement : report.measurements) {
    if (measurement.step < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("measurement: expected a step >= 0, got ", measurement.step));
    }
  }
  HPO_RETURN_IF_ERROR(CheckDatabase(report.lease));
  return Explained(scheduler_.results().ReportMeasurements(report));
}

absl::StatusOr<FinishResult> WorkerApi::FinishTrial(const std::string& request_id,
                                                    const FinishRequest& request) {
  HPO_RETURN_IF_ERROR(CheckDatabase(request.lease));
  return Explained(scheduler_.results().FinishTrial(request_id, request));
}

absl::StatusOr<TrialState> WorkerApi::ReleaseTrial(const std::string& request_id,
                                                   const TrialRelease& release) {
  HPO_RETURN_IF_ERROR(CheckSize("needed_bytes", release.needed));
  HPO_RETURN_IF_ERROR(CheckDatabase(release.lease));
  return Explained(scheduler_.results().ReleaseTrial(request_id, release));
}

absl::StatusOr<std::optional<Preflight>> WorkerApi::AcquirePreflight(
    const std::string& session, absl::Duration wait, const std::function<bool()>& cancelled) {
  return scheduler_.preflights().AcquirePreflight(session, wait, cancelled);
}

absl::Status WorkerApi::ReportPreflight(const std::string& session, const PreflightReport& report) {
  for (const PreflightNeed& need : report.needs) {
    HPO_RETURN_IF_ERROR(CheckSize("required_bytes", need.required));
    HPO_RETURN_IF_ERROR(CheckSize("margin_bytes", need.margin));
    if (need.threads < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("threads: expected at least 0, got ", need.threads));
    }
  }
  if (report.took < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("took: expected at least 0, got ", absl::FormatDuration(report.took)));
  }
  return scheduler_.preflights().ReportPreflight(session, report);
}

absl::Status WorkerApi::CheckDatabase(const LeaseRef& lease) const {
  const std::string& own = scheduler_.state().epoch.database;
  if (lease.database.empty() || lease.database == own) return absl::OkStatus();
  return WithRefusal(absl::FailedPreconditionError(absl::StrCat(
                         "trial ", lease.trial.study, " #", lease.trial.number.value,
                         " is of database ", lease.database, ", this server has database ", own)),
                     {RefusalReason::kAnotherDatabase, own});
}

template <typename Result>
absl::StatusOr<Result> WorkerApi::Explained(absl::StatusOr<Result> result) const {
  if (absl::IsAborted(result.status())) {
    return WithRefusal(result.status(),
                       {RefusalReason::kSuperseded, scheduler_.state().epoch.database});
  }
  if (absl::IsNotFound(result.status())) {
    return WithRefusal(result.status(),
                       {RefusalReason::kUnknownTrial, scheduler_.state().epoch.database});
  }
  return result;
}

}  // namespace hpo::server
