// What an attempt's end means for its trial: over, or again. Pure.
//
// Budgets, each counted apart: preemption has none; a lost worker 3; a worker whose name another
// process took after it had fallen silent 10; a transient failure of the trainer 2; an OOM of kind
// B or C 2; host OOM 1. Two different workers lost to the same trial end it at once: it is what
// kills them. An OOM of kind A or D, met or predicted, ends the trial only when no card of the
// study is larger, by more than 64 MiB, than the limit it was met at; one that no parameter of the
// study explains, only after 1 retry there.
#pragma once

#include <optional>
#include <string>

#include "common/base/bytes.h"
#include "common/study/trial.h"
#include "server/storage/records.h"

namespace hpo::server {

struct RetryLimits {
  int64_t worker_losses = 3;
  int64_t takeovers = 10;
  int64_t transient_failures = 2;
  int64_t device_ooms = 2;
  int64_t host_ooms = 1;
  int64_t unexplained_ooms = 1;  // counted with device_ooms
  int64_t workers_killed = 2;    // this many different ones: poison
};

struct Verdict {
  std::optional<TrialOutcome> end;  // nullopt: the trial runs again
  RetryCounts counts;               // to be stored
  // The trial runs again only where more than this is usable; 0: no new bound.
  Bytes min_capacity;
  std::string note;  // why, for people
};

// What was known as an attempt met an OOM.
struct OomCircumstances {
  Bytes limit;  // what the attempt was allowed
  // The most that any live worker of the study may use; nullopt when none is known (then a larger
  // one may yet come).
  std::optional<Bytes> largest;
  bool explained = true;  // parameters of the study may be why (ParametersExplainOom)
};

Verdict AfterOutcome(const TrialOutcome& outcome, const RetryCounts& counts,
                     const OomCircumstances& at, const RetryLimits& limits = {});

// `workers_killed`: how many different workers were lost while running the trial, this one
// included.
Verdict AfterWorkerLoss(const RetryCounts& counts, int64_t workers_killed,
                        const RetryLimits& limits = {});

// Another process took the name of the worker, which had fallen silent. That is no evidence against
// the trial, but one that comes back for ever this way is to end.
Verdict AfterTakeover(const RetryCounts& counts, const RetryLimits& limits = {});

// The worker gave the trial back. `needed`: with kRejected, what the trial would need.
Verdict AfterRelease(ReleaseReason reason, Bytes needed, const std::string& note,
                     const RetryCounts& counts, const OomCircumstances& at,
                     const RetryLimits& limits = {});

}  // namespace hpo::server
