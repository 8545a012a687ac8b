// What a worker does when a call to the server fails: the table of docs/status_codes.md, which a
// test compares with this code. Pure.
//
// Only a wrong configuration (a name that is taken is one) ends a worker, and only a reason of the
// trial's own database (see common/protocol/refusal.h) makes it give up a trial or a result: any
// code may come from a full disk, a proxy, or another server that answers on the address for a
// moment.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hpo::agent {

enum class Rpc {
  kListStudies,
  kRegisterWorker,
  kAcquireTrial,
  kHeartbeat,
  kReportMeasurements,
  kFinishTrial,
  kReleaseTrial,
  kAcquirePreflight,
  kReportPreflight,
};

enum class Reaction {
  kWait,           // nobody answers: everything waits for the server, with longer and longer pauses
  kTryAgain,       // this call is sent again after a pause; others go on meanwhile
  kRegisterAgain,  // the session is forgotten: register, then send it again
  kGiveUp,         // the trial is another attempt's: stop the trainer, discard the result
  kSetAside,       // the database will never take this message: keep it apart, tell people
  kEnd,            // wrong configuration: the worker ends with 78, or 79: its name is taken
};

// As the document names it: "register again".
absl::string_view Name(Reaction reaction);

// `failure` is not OK. `database`: whose call it was: that of the lease, or for calls without one
// the first that the worker was registered with; empty: not known, so that any database may refuse.
Reaction ReactionTo(Rpc rpc, const absl::Status& failure, const std::string& database);

}  // namespace hpo::agent
