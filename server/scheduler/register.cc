// TrialScheduler: a worker registers.
#include "common/base/status.h"
#include "common/protocol/refusal.h"
#include "server/placement/capability.h"
#include "server/scheduler/trial_scheduler.h"

namespace hpo {

absl::StatusOr<Registration> TrialScheduler::Register(const WorkerFacts& facts,
                                                      const std::string& predecessor) {
  for (const StudyRuntime* study : Studies()) {
    if (study->Finished() || !CheckTold(study->name(), facts).ok()) continue;
    const absl::Status same = CheckDigests(study->name(), study->data_digests(), facts);
    if (!same.ok()) return WithRefusal(same, {RefusalReason::kConfiguration, database_});
  }
  const absl::StatusOr<NameGrant> name = workers_.ClaimName(
      {.name = facts.worker, .instance_key = facts.instance_key, .predecessor = predecessor});
  if (absl::IsAlreadyExists(name.status())) {
    return WithRefusal(name.status(), {RefusalReason::kNameTaken, database_});
  }
  HPO_RETURN_IF_ERROR(name.status());
  HPO_RETURN_IF_ERROR(store_->Write(
      [&](Database& database) { return StudyStore(database).UpsertWorker(facts, clock_.Now()); }));
  const std::string session = workers_.Register(facts, *name);
  HPO_RETURN_IF_ERROR(ReleaseOlderInstance(facts, *name));
  // A larger card may be what a queued trial waits for.
  WakeAll();
  return Registration{.session = session,
                      .server_epoch = epoch_,
                      .heartbeat_interval = HeartbeatInterval(options_.lease),
                      .lease_ttl = options_.lease.ttl,
                      .studies_version = studies_version(),
                      .database = database_};
}

absl::Status TrialScheduler::ReleaseOlderInstance(const WorkerFacts& facts, NameGrant how) {
  for (StudyRuntime* study : Studies()) {
    for (const HeldLease& lease : study->leases()) {
      if (lease.worker != facts.worker || lease.instance_key == facts.instance_key) continue;
      HPO_RETURN_IF_ERROR(
          EndLease(*study, lease,
                   how == NameGrant::kTakenOver ? LeaseLoss::kNameTaken : LeaseLoss::kRestarted));
    }
  }
  return absl::OkStatus();
}

}  // namespace hpo
