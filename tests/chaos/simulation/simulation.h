// Random events against the scheduler in virtual time: workers that ask, beat, report, finish,
// give back, repeat, lie and die; people that enqueue, order and extend; time that passes; a
// server that restarts or is killed.
//
// An episode is a database of its own, from its studies' beginning to their end. It depends on its
// seed alone, so that one which breaks a rule can be run again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "tests/chaos/simulation/simulated_server.h"
#include "tests/chaos/simulation/trial_ledger.h"

namespace hpo {

struct EpisodeResult {
  int64_t num_events = 0;
  int64_t num_told = 0;            // results that the server took
  absl::Status violation;          // of the rule that was broken; OK: none
  std::vector<std::string> trace;  // one line an event
};

// Puts temporary files into memory where the system has room for such: commits then wait for no
// disk. What is simulated is not the loss of power. Before any thread is started.
void KeepDatabasesInMemory();

// Runs `num_events` random events and then, with workers that do as they should, the studies to
// their end.
EpisodeResult RunEpisode(uint64_t seed, int64_t num_events);

// One episode under way. Every event returns Internal where the server broke a rule.
class Simulation {
 public:
  explicit Simulation(uint64_t seed);

  absl::Status Begin();
  absl::Status Step();
  absl::Status RunToTheEnd();

  int64_t num_told() const { return ledger_.num_told(); }
  const std::vector<std::string>& trace() const { return trace_; }

 private:
  struct Worker {
    WorkerFacts facts;
    std::string predecessor;
    int64_t num_instances = 0;
    std::string session;
    std::vector<LeaseRef> held;
    std::vector<LeaseRef> old;  // over, as far as the worker knows
    std::string ask_id;         // of the latest ask
    std::string tell_id;        // of the latest result, which `told` and `answer` are
    FinishRequest told;
    FinishResult answer;
  };
  using Event = absl::Status (Simulation::*)();
  struct Weighted {
    int weight;
    Event event;
  };
  static const std::vector<Weighted>& Events();

  // ---- Workers ----
  absl::Status Register();
  absl::Status RegisterAs(Worker& worker, bool new_process);
  absl::Status Ask();
  absl::Status AskAgain();
  absl::Status AskWith(Worker& worker, const std::string& request_id);
  absl::Status BeatAll();
  absl::Status BeatStale();
  absl::Status BeatOf(const Worker& worker, const std::vector<LeaseRef>& leases);
  absl::Status Report();
  absl::Status Finish();
  absl::Status FinishLate();
  absl::Status FinishWith(Worker& worker, const LeaseRef& lease);
  absl::Status RepeatFinish();
  absl::Status ReuseRequestId();
  absl::Status FinishWithAForgedToken();
  absl::Status Release();
  // ---- People ----
  absl::Status Enqueue();
  absl::Status Preempt();
  absl::Status StopTrial();
  absl::Status CancelTrial();
  absl::Status OrderStudy();
  absl::Status Extend();
  absl::Status AddStudyAgain();
  // ---- Time and the server ----
  absl::Status PassSeconds();
  absl::Status PassMinutes();
  absl::Status JumpWallClock();
  absl::Status Tick();
  absl::Status Restart();
  absl::Status Crash();
  absl::Status Audit();

  // No trial is open, and no more will come.
  absl::Status ExpectOver(const std::string& name);
  absl::Status AuditStudy(const std::string& name);
  absl::Status FinishHonestly(Worker& worker);
  Worker& AnyWorker() { return workers_[rng_.Below(workers_.size())]; }
  const StudySpec& AnyStudy() { return studies_[rng_.Below(studies_.size())]; }
  TrialOutcome AnyOutcome();
  FinishRequest RequestFor(const LeaseRef& lease, TrialOutcome outcome);
  std::string NextId() { return "request-" + std::to_string(++num_requests_); }
  absl::Duration Now() const;
  void Trace(const std::string& line) { trace_.push_back(line); }
  // OK where `status` is, or refuses for a reason that a caller may meet.
  absl::Status Allowed(const char* call, const absl::Status& status);

  Rng rng_;
  TrialLedger ledger_;
  std::unique_ptr<SimulatedServer> server_;
  std::vector<StudySpec> studies_;
  std::vector<Worker> workers_;
  // By study: a trial that somebody asks for by name runs although the budget is used up.
  std::map<std::string, int64_t> enqueued_beyond_budget_;
  int64_t num_requests_ = 0;
  std::vector<std::string> trace_;
};

}  // namespace hpo
