#include "worker/agent/session/rpc_reaction.h"

#include <optional>

#include "common/base/status.h"
#include "common/protocol/refusal.h"

namespace hpo::agent {
namespace {

bool IsAboutALease(Rpc rpc) {
  return rpc == Rpc::kReportMeasurements || rpc == Rpc::kFinishTrial || rpc == Rpc::kReleaseTrial;
}

Reaction ReactionToRefusal(Rpc rpc, RefusalReason reason) {
  switch (reason) {
    case RefusalReason::kSuperseded:
      return Reaction::kGiveUp;
    case RefusalReason::kUnknownTrial:
      return rpc == Rpc::kFinishTrial ? Reaction::kSetAside : Reaction::kGiveUp;
    case RefusalReason::kConfiguration:
    case RefusalReason::kNameTaken:
      return rpc == Rpc::kRegisterWorker ? Reaction::kEnd : Reaction::kTryAgain;
    case RefusalReason::kAnotherDatabase:
      return Reaction::kTryAgain;
  }
  HPO_CHECK(false && "unreachable");
}

// A dry run is worth less than the trial: it ends no worker, and its report is given up where the
// server does not know the session any more, which then waits for no report.
Reaction ReactionOfPreflight(Rpc rpc, absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return Reaction::kWait;
    case absl::StatusCode::kNotFound:
      return rpc == Rpc::kAcquirePreflight ? Reaction::kRegisterAgain : Reaction::kGiveUp;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
      return rpc == Rpc::kAcquirePreflight ? Reaction::kTryAgain : Reaction::kGiveUp;
    default:
      return Reaction::kTryAgain;
  }
}

// Without a reason: what the code alone may mean.
Reaction ReactionToCode(Rpc rpc, absl::StatusCode code) {
  if (rpc == Rpc::kAcquirePreflight || rpc == Rpc::kReportPreflight) {
    return ReactionOfPreflight(rpc, code);
  }
  // A heartbeat that fails is followed by the next; its answer says when to register again.
  if (rpc == Rpc::kHeartbeat) return Reaction::kTryAgain;
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return Reaction::kWait;
    case absl::StatusCode::kNotFound:
      return IsAboutALease(rpc) || rpc == Rpc::kAcquireTrial ? Reaction::kRegisterAgain
                                                             : Reaction::kTryAgain;
    case absl::StatusCode::kInvalidArgument:
      if (IsAboutALease(rpc)) return Reaction::kSetAside;
      return rpc == Rpc::kRegisterWorker ? Reaction::kEnd : Reaction::kTryAgain;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return IsAboutALease(rpc) ? Reaction::kTryAgain : Reaction::kEnd;
    default:
      return Reaction::kTryAgain;
  }
}

}  // namespace

absl::string_view Name(Reaction reaction) {
  switch (reaction) {
    case Reaction::kWait:
      return "wait";
    case Reaction::kTryAgain:
      return "try again";
    case Reaction::kRegisterAgain:
      return "register again";
    case Reaction::kGiveUp:
      return "give up";
    case Reaction::kSetAside:
      return "set aside";
    case Reaction::kEnd:
      return "end";
  }
  HPO_CHECK(false && "unreachable");
}

Reaction ReactionTo(Rpc rpc, const absl::Status& failure, const std::string& database) {
  const std::optional<Refusal> refusal = RefusalOf(failure);
  if (!refusal) return ReactionToCode(rpc, failure.code());
  // What another database refuses, the trial's own may take once it is back.
  const bool own = database.empty() || refusal->database == database;
  return own ? ReactionToRefusal(rpc, refusal->reason) : Reaction::kTryAgain;
}

}  // namespace hpo::agent
