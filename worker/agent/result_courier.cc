#include "worker/agent/result_courier.h"

#include "common/ids.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace hpo {
namespace {

constexpr int kMaxReleaseTries = 3;

// Asking again would not help.
bool NeverWanted(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsNotFound(status) ||
         absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status) ||
         absl::IsAlreadyExists(status);
}

}  // namespace

absl::Status ResultCourier::Accept(const FinishRequest& result) {
  return outbox_.Append({.request_id = RandomId(), .request = result});
}

absl::Status ResultCourier::DeliverAll() {
  while (!outbox_.pending().empty()) {
    const OutboxEntry entry = outbox_.pending().front();
    const LeaseRef& lease = entry.request.lease;
    const absl::StatusOr<FinishResult> result = Tell(entry);
    if (!result.ok() && !NeverWanted(result.status())) return result.status();
    if (result.ok()) {
      spdlog::info("trial #{} of {}: {}{}", lease.trial.number.value, lease.trial.study,
                   std::string(Name(result->state)),
                   result->stored ? "" : " (the server had a result already)");
    } else {
      spdlog::warn("trial #{} of {}: the server does not take its result: {}",
                   lease.trial.number.value, lease.trial.study,
                   std::string(result.status().message()));
    }
    keeper_.Drop(lease);
    told_(lease, result);
    HPO_RETURN_IF_ERROR(outbox_.Acknowledge(entry.request_id));
  }
  return absl::OkStatus();
}

// Once more after registering, when the server has forgotten the session.
absl::StatusOr<FinishResult> ResultCourier::Tell(const OutboxEntry& entry) {
  const std::string session = session_.current().session;
  absl::StatusOr<FinishResult> result =
      client_.FinishTrial(session, entry.request_id, entry.request);
  if (!absl::IsNotFound(result.status())) return result;
  HPO_RETURN_IF_ERROR(session_.Renew(session, client_));
  return client_.FinishTrial(session_.current().session, entry.request_id, entry.request);
}

absl::Status ResultCourier::GiveBack(const TrialRelease& release) {
  const std::string request_id = RandomId();
  absl::Status released;
  for (int attempt = 0; attempt < kMaxReleaseTries; ++attempt) {
    const std::string session = session_.current().session;
    released = client_.ReleaseTrial(session, request_id, release).status();
    if (absl::IsNotFound(released) && session_.Renew(session, client_).ok()) continue;
    if (!IsServerAway(released)) break;
  }
  keeper_.Drop(release.lease);
  if (IsServerAway(released)) return released;
  spdlog::info("trial #{}: given back ({}){}{}", release.lease.trial.number.value,
               std::string(Name(release.reason)), release.note.empty() ? "" : ": ",
               released.ok() ? release.note : released.ToString());
  return absl::OkStatus();
}

}  // namespace hpo
