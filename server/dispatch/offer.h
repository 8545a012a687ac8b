// Who asks for a trial, and what it is offered.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/protocol/worker_exchange.h"
#include "common/protocol/worker_facts.h"
#include "server/studies/study_runtime.h"

namespace hpo::server {

constexpr absl::Duration kLongestAcquire = absl::Seconds(50);
// How often a waiting call looks whether its caller is still there.
constexpr absl::Duration kAcquireCancellationCheck = absl::Milliseconds(100);

// The obstacle of a worker that waits for its own dry run.
inline constexpr char kDryRunFirst[] = "a configuration is dry-run first";

struct Asker {
  WorkerFacts facts;
  std::string request_id;
};

// Without an assignment: what keeps the asker from one; empty: nothing that could be helped.
struct Offer {
  std::optional<Assignment> assignment;
  std::string obstacle;
  // All of its budget is handed out, and so the asker waits for what runs.
  const StudyRuntime* handed_out = nullptr;
  bool may_pass = false;  // the obstacle, by itself or as other trials of the study run
};

}  // namespace hpo::server
