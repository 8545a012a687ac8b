// Tested by tests/server/leases/lost_worker_test.cc.
#include "server/leases/worker_sessions.h"

#include <algorithm>
#include <optional>

#include "common/base/status.h"
#include "common/protocol/refusal.h"
#include "server/placement/capability.h"
#include "server/storage/study_store.h"
#include "server/workers/lease.h"

namespace hpo::server {

absl::Status WorkerSessions::CheckData(const WorkerFacts& facts) const {
  for (const StudyRuntime* study : state_.studies.All()) {
    if (study->standing().finished || !CheckTold(study->name(), facts).ok()) continue;
    HPO_RETURN_IF_ERROR(CheckDigests(study->name(), study->data_digests(), facts));
  }
  return absl::OkStatus();
}

absl::StatusOr<Registration> WorkerSessions::RegisterWorker(const WorkerFacts& facts,
                                                            const std::string& predecessor) {
  if (const absl::Status same = CheckData(facts); !same.ok()) {
    return WithRefusal(same, {RefusalReason::kConfiguration, state_.epoch.database});
  }
  const absl::StatusOr<NameGrant> name = state_.workers.ClaimName(
      {.name = facts.worker, .instance_key = facts.instance_key, .predecessor = predecessor});
  if (absl::IsAlreadyExists(name.status())) {
    return WithRefusal(name.status(), {RefusalReason::kNameTaken, state_.epoch.database});
  }
  HPO_RETURN_IF_ERROR(name.status());
  HPO_RETURN_IF_ERROR(state_.store->Write([&](Database& database) {
    return StudyStore(database).UpsertWorker(facts, state_.clock.Now());
  }));
  const std::string session = state_.workers.Register(facts, *name);
  HPO_RETURN_IF_ERROR(TakeBackOfOlderInstance(facts, *name));
  for (StudyRuntime* study : state_.studies.All()) study->obstacles.Clear(facts.worker);
  // A larger card may be what a queued trial waits for.
  state_.work.Raise();
  return Registration{.session = session,
                      .heartbeat_interval = HeartbeatInterval(state_.options.lease),
                      .studies_version = state_.studies.version(),
                      .database = state_.epoch.database};
}

absl::Status WorkerSessions::TakeBackOfOlderInstance(const WorkerFacts& facts, NameGrant how) {
  const LeaseLoss why =
      how == NameGrant::kTakenOver ? LeaseLoss::kNameTaken : LeaseLoss::kRestarted;
  for (StudyRuntime* study : state_.studies.All()) {
    for (const HeldLease& lease : study->open.leases()) {
      if (lease.worker != facts.worker || lease.instance_key == facts.instance_key) continue;
      HPO_RETURN_IF_ERROR(leases_.TakeBack(*study, lease, why));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<HeartbeatResult> WorkerSessions::Heartbeat(const std::string& session,
                                                          const std::vector<LeaseBeat>& beats,
                                                          Bytes capacity, const std::string& notice,
                                                          Goodbye goodbye) {
  HeartbeatResult result;
  result.next = HeartbeatInterval(state_.options.lease);
  // 0: the worker could not measure it just now.
  const std::optional<Bytes> measured =
      capacity.count > 0 ? std::optional<Bytes>(capacity) : std::nullopt;
  const absl::StatusOr<RegisteredWorker> worker = state_.workers.Beat(session, measured);
  result.register_again = absl::IsNotFound(worker.status());
  state_.workers.SetNotice(session, notice);
  for (const LeaseBeat& beat : beats) {
    HPO_ASSIGN_OR_RETURN(const Directive directive, leases_.Renew(beat.lease));
    result.directives.push_back(directive);
    if (directive != Directive::kLeaseLost) Note(beat);
  }
  if (goodbye != Goodbye::kNone && worker.ok()) {
    state_.workers.Leave(session);
    // Of one that leaves by itself the answer never reached it.
    const LeaseLoss why =
        goodbye == Goodbye::kDied ? LeaseLoss::kProcessEnded : LeaseLoss::kNeverTaken;
    HPO_RETURN_IF_ERROR(TakeBackAllBut(beats, worker->facts, why));
    state_.work.Raise();
  }
  return result;
}

void WorkerSessions::Note(const LeaseBeat& beat) const {
  const bool is_ours = beat.lease.database.empty() || beat.lease.database == state_.epoch.database;
  const absl::StatusOr<StudyRuntime*> study = state_.studies.Find(beat.lease.trial.study);
  if (is_ours && study.ok()) (*study)->open.Note(beat);
}

absl::Status WorkerSessions::TakeBackAllBut(const std::vector<LeaseBeat>& still_held,
                                            const WorkerFacts& left, LeaseLoss why) {
  for (StudyRuntime* study : state_.studies.All()) {
    for (const HeldLease& lease : study->open.leases()) {
      if (lease.worker != left.worker || lease.instance_key != left.instance_key) continue;
      const bool held = std::any_of(still_held.begin(), still_held.end(), [&](const LeaseBeat& b) {
        return b.lease.trial == TrialId{study->name(), lease.trial} &&
               b.lease.attempt == lease.attempt;
      });
      if (!held) HPO_RETURN_IF_ERROR(leases_.TakeBack(*study, lease, why));
    }
  }
  return absl::OkStatus();
}

}  // namespace hpo::server
