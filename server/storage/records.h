// Rows of the database as values: the public value plus what only the server keeps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/protocol/preflight.h"
#include "common/protocol/worker_facts.h"
#include "common/study/study.h"
#include "common/study/study_status.h"
#include "common/study/trial.h"
#include "memory/need/calibration.h"

namespace hpo::server {

// The trials of an earlier study that a study starts from, as they were chosen when it was added.
struct StudyPrior {
  std::string study;
  std::vector<TrialNumber> trials;
  int64_t num_skipped = 0;
  std::string why_skipped;
  bool operator==(const StudyPrior&) const = default;
};

struct StudyRecord {
  int64_t id = 0;
  StudySpec spec;
  absl::Time created = absl::InfinitePast();
  int64_t next_number = 0;
  int64_t num_budgeted = 0;  // neither demonstrations nor outside the budget, in any state
  int64_t last_sequence = 0;
  absl::Duration wall_clock;
  std::map<std::string, std::string> data_digests;  // by file, once a trial has started
  std::vector<StudyPrior> priors;                   // in the order of spec.warm_start
  StudyOrder order = StudyOrder::kRun;
  TrialNumber failures_from;  // trials before this one failed before people had it go on
};

// Ends that did not end the trial, by cause.
struct RetryCounts {
  int64_t preemptions = 0;
  int64_t worker_losses = 0;
  int64_t takeovers = 0;
  int64_t transient_failures = 0;
  int64_t device_ooms = 0;  // kinds B and C
  int64_t host_ooms = 0;
  bool operator==(const RetryCounts&) const = default;
};

constexpr TrialNumber kNoTrial{-1};  // the study itself
constexpr AttemptNumber kNoAttempt{0};

struct TrialRecord {
  int64_t study_id = 0;
  // `attempts`, `last_measurement` and `attributes` are filled where the loading function says so.
  Trial trial;
  AttemptNumber current_attempt = kNoAttempt;  // the newest
  AttemptNumber result_attempt = kNoAttempt;   // whose outcome was taken
  RetryCounts retries;
  bool oom_met = false;
  std::optional<TrialOutcome> last_oom;  // what a requeue for a larger card put off
  int64_t last_sequence = 0;
  // How long workers had held it when that was last stored (TrialStore::SetHeld).
  absl::Duration held;

  // Whose measurements tell about the trial; kNoAttempt: nobody's.
  AttemptNumber ToldAttempt() const {
    return result_attempt > kNoAttempt ? result_attempt : current_attempt;
  }
  bool IsOpen() const {
    return trial.state == TrialState::kQueued || trial.state == TrialState::kRunning;
  }
};

struct AttemptRecord {
  int64_t study_id = 0;
  TrialNumber trial;
  Attempt attempt;
  std::string instance_key;  // of the worker process
  std::string token;         // set only when the assignment is made, never stored
  std::string token_hash;    // SHA-256, hexadecimal
  Bytes limit;               // what the trial may use
  Bytes required;            // what must be free for it to start; 0: nothing known
  bool preempted = false;    // its worker was ordered to give the trial back
  // Why its worker was ordered to end the trial as CANCELLED; nullopt: it was not.
  std::optional<std::string> stop_order;
  // Of this attempt, whether or not the trial took it.
  std::optional<TrialOutcome> outcome;

  bool HoldsLease() const {
    return attempt.state == AttemptState::kLeased || attempt.state == AttemptState::kSuspect;
  }
};

// What an attempt's end said about its memory estimate.
struct ResidualRecord {
  TrialNumber trial;
  AttemptNumber attempt;
  memory::Residual residual;
  MemoryPlan plan;                   // that the prediction is for
  memory::MemoryEstimate predicted;  // its need, live, reserved and fragility are stored
  MemoryReport used;                 // its live, reserved and device bytes are stored
  Bytes limit;
  DeviceProfile device;
  std::string torch_build;
};

// What a suggestion depended on.
struct SuggestionRecord {
  Bytes capacity;
  int64_t calibration_version = 0;
  int64_t history_sequence = 0;
  std::string sampler;  // who proposed it, and why, for people
  std::optional<double> score;
};

// What a dry run of a configuration found for one GPU.
struct DryRunRecord {
  int64_t number = 0;    // counts the study's dry runs
  int64_t position = 0;  // 0: the GPU of the worker that ran it
  ParamMap params;
  std::string worker;
  PreflightNeed need;
  absl::Duration took;
  std::string message;
  bool refused = false;  // the worker was not given the configuration
  absl::Time time = absl::InfinitePast();
  bool operator==(const DryRunRecord&) const = default;
};

}  // namespace hpo::server
