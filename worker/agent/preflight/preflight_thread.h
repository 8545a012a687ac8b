// A thread that asks the server for configurations to dry-run, for as long as the worker is
// registered, runs them and reports. The worker's loop knows nothing of it.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "common/protocol/worker_facts.h"
#include "worker/agent/preflight/dry_runner.h"
#include "worker/agent/process/backoff.h"
#include "worker/agent/process/stop_signal.h"
#include "worker/agent/process/wake_up.h"
#include "worker/agent/session/coordinator_client.h"
#include "worker/agent/session/worker_session.h"

namespace hpo::agent {

// What dry runs work with. All outlive the thread.
struct PreflightServices {
  CoordinatorClient& client;  // a connection of its own
  DryRunner& runner;
  PreflightAbility ability = PreflightAbility::kIfAsked;  // as the worker registers
};

struct PreflightTimes {
  absl::Duration wait = absl::Seconds(30);  // of one call, on the server
  // Between calls that fail, or bring nothing at once.
  absl::Duration first_retry = absl::Milliseconds(500);
  absl::Duration longest_retry = absl::Seconds(10);
};

class PreflightThread {
 public:
  // Starts the thread; without services there is none. The worker has registered. `seed` spreads
  // the calls of many workers.
  PreflightThread(const PreflightServices* services, WorkerSession& session, StopSignal& stop,
                  uint64_t seed, PreflightTimes times = {});

  // Ends a dry run that goes on, and the thread.
  ~PreflightThread();

  PreflightThread(const PreflightThread&) = delete;
  PreflightThread& operator=(const PreflightThread&) = delete;

 private:
  void Run();
  // Asks once, runs what comes, and reports.
  void AskAndRun();
  // Until the server has it, or waits for it no longer.
  void Deliver(const std::string& session, const PreflightReport& report);
  // StopWait: the worker drains or ends, or this object does.
  bool WaitForStop(absl::Duration timeout);
  void PauseAfter(const absl::Status& failure);

  const PreflightServices* const services_;
  WorkerSession& session_;
  StopSignal& stop_;
  const PreflightTimes times_;
  Backoff pauses_;
  std::atomic<bool> ending_ = false;
  WakeUp end_;
  std::thread thread_;
};

}  // namespace hpo::agent
