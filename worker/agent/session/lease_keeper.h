// Keeps leases alive: a thread that heartbeats through a connection of its own, so that neither
// training nor a slow report can starve it. Learns its cadence from the server, registers again
// when the server has forgotten the worker (a restarted server then takes the leases back by their
// tokens), collects what the server wants done with a lease, and says goodbye at the end, so that
// the worker's name is free. Thread-safe.
#pragma once

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/protocol/worker_exchange.h"
#include "worker/agent/device/capacity.h"
#include "worker/agent/process/backoff.h"
#include "worker/agent/process/wake_up.h"
#include "worker/agent/session/coordinator_client.h"
#include "worker/agent/session/worker_session.h"

namespace hpo::agent {

class LeaseKeeper {
 public:
  // Starts the thread. `client` is used by no one else; `wake` is notified with each directive
  // other than kContinue. All must outlive the keeper. `seed` spreads the beats of many workers.
  LeaseKeeper(CoordinatorClient& client, WorkerSession& session, DeviceCapacity& capacity,
              WakeUp& wake, uint64_t seed);

  // Says goodbye, where the worker is registered, with the leases whose results are still to come,
  // and ends the thread, after a beat in progress and the goodbye. Each is one call, over in 5 s
  // also where the server hangs. Only where the server has restarted since, it is more: a beat
  // registers again, at most 15 s, and a goodbye does so and is then said once more, 25 s in all.
  ~LeaseKeeper();

  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // Beats for `lease` from now on, the first time at once.
  void Hold(const LeaseRef& lease);

  // What the next beats say of a held lease. Unknown leases are ignored.
  void Update(const LeaseBeat& beat);

  // Beats for it no longer.
  void Drop(const LeaseRef& lease);

  // What the next beats tell people about `topic`; empty: nothing.
  void SetNotice(const std::string& topic, const std::string& notice);

  // The last directive other than kContinue for a held lease.
  Directive DirectiveFor(const LeaseRef& lease) const;

 private:
  struct HeldLease {
    LeaseBeat beat;
    Directive directive = Directive::kContinue;
    std::string told_log;  // the tail of the log that the server has
  };

  void Run();
  // A log is in them where the server does not have it.
  std::vector<LeaseBeat> HeldBeats() const;
  // The server has what `beats` say of logs.
  void LogsTold(const std::vector<LeaseBeat>& beats);
  // The server has forgotten them.
  void LogsForgotten();
  void SayGoodbye();
  //   NotFound  the server does not know the session
  absl::Status SayGoodbye(const std::string& session);
  // One heartbeat; the time until the next.
  absl::Duration Beat();
  void TakeDirectives(const std::vector<LeaseBeat>& beats, const std::vector<Directive>& given);
  HeldLease* Find(const LeaseRef& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  CoordinatorClient& client_;
  WorkerSession& session_;
  DeviceCapacity& capacity_;
  WakeUp& wake_;
  Rng jitter_;
  Backoff backoff_;

  mutable absl::Mutex mutex_;
  std::vector<HeldLease> held_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> notices_ ABSL_GUARDED_BY(mutex_);  // by topic
  bool beat_now_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hpo::agent
