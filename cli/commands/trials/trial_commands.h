// The commands on trials, and `hpo best` and `hpo enqueue`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/client/session.h"

namespace hpo::cli {

struct TrialListOptions {
  std::vector<std::string> states;  // names, any case; empty: all
  int limit = 50;                   // trials a page
  int page = 1;
  bool newest_first = false;
  std::string sort;                // as QueryTrials takes them
  std::vector<std::string> where;  // likewise
  std::vector<std::string> tags;   // only trials that have all of them
};

absl::Status ListTrials(Session& session, const TrialListOptions& options);

absl::Status ShowTrial(Session& session, TrialNumber number);

// Its worker saves and gives it back; it is queued again.
//   FailedPrecondition  no worker runs it
absl::Status PreemptTrial(Session& session, TrialNumber number);

// Queues their configurations again; `numbers` empty: of every trial that failed.
//   FailedPrecondition  one that did not fail, and that memory did not end
absl::Status RetryTrials(Session& session, const std::vector<int64_t>& numbers);

// A running trial ends as CANCELLED, at its worker's next heartbeat; a queued one at once.
//   FailedPrecondition  it does not run, is not queued
absl::Status StopTrial(Session& session, TrialNumber number);

absl::Status CancelTrial(Session& session, TrialNumber number);

// `count` left out: the best one, of several objectives the whole Pareto front.
//   NotFound  no trial has completed yet
absl::Status ShowBest(Session& session, std::optional<int> count, const std::string& export_to);

struct EnqueueOptions {
  std::vector<std::string> params;  // "name=value"
  bool demonstration = false;
  bool skip_admission = false;
  int64_t micro_batch = 0;
};

absl::Status Enqueue(Session& session, const EnqueueOptions& options);

}  // namespace hpo::cli
