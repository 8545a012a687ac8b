#include "server/leases/retry_policy.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "server/placement/capability.h"

namespace hpo::server {
namespace {

bool IsTransient(FailureClass failure_class) {
  switch (failure_class) {
    case FailureClass::kTrainerCrashed:
    case FailureClass::kTrainerKilled:
    case FailureClass::kDeviceLost:
      return true;
    case FailureClass::kBadData:
    case FailureClass::kBadModel:
    case FailureClass::kBadConfiguration:
    case FailureClass::kDiverged:
    case FailureClass::kProtocol:
    case FailureClass::kWorkerLost:
    case FailureClass::kInternal:
      return false;
  }
  return false;
}

Verdict End(TrialOutcome outcome, const RetryCounts& counts, std::string note) {
  return Verdict{.end = std::move(outcome), .counts = counts, .note = std::move(note)};
}

// Counts one more in `budget` and runs the trial again while that is within `allowed`.
Verdict WithinBudget(TrialOutcome outcome, RetryCounts counts, int64_t RetryCounts::*budget,
                     int64_t allowed, absl::string_view what) {
  const int64_t times = ++(counts.*budget);
  if (times > allowed) {
    return End(std::move(outcome), counts, absl::StrCat(what, " ", times, " times"));
  }
  return Verdict{.counts = counts, .note = absl::StrCat(what, ", retry ", times, " of ", allowed)};
}

Verdict AfterConfigurationOom(OutOfMemory oom, const RetryCounts& counts,
                              const OomCircumstances& at, const RetryLimits& limits) {
  if (oom.limit.count <= 0) oom.limit = at.limit;
  const Bytes bound = std::max(oom.limit, at.limit);
  // What is larger by noise is no larger card.
  if (at.largest.has_value() && *at.largest - bound <= kCapacityNoise) {
    if (!at.explained) {
      return WithinBudget(oom, counts, &RetryCounts::device_ooms, limits.unexplained_ooms,
                          "out of memory, which no parameter explains");
    }
    return End(oom, counts,
               absl::StrCat("out of memory at ", FormatBytes(bound), ", the study's largest"));
  }
  return Verdict{.counts = counts,
                 .min_capacity = bound,
                 .note = absl::StrCat("out of memory at ", FormatBytes(bound),
                                      ", again where more is usable")};
}

Verdict AfterOom(const OutOfMemory& oom, const RetryCounts& counts, const OomCircumstances& at,
                 const RetryLimits& limits) {
  switch (oom.kind) {
    case OomKind::kConfiguration:
    case OomKind::kLatePeak:
      return AfterConfigurationOom(oom, counts, at, limits);
    case OomKind::kDirtyDevice:
      return WithinBudget(oom, counts, &RetryCounts::device_ooms, limits.device_ooms,
                          "out of memory on a device that others use");
    case OomKind::kFragmentation:
      return WithinBudget(oom, counts, &RetryCounts::device_ooms, limits.device_ooms,
                          "out of memory by fragmentation");
    case OomKind::kHost:
      return WithinBudget(oom, counts, &RetryCounts::host_ooms, limits.host_ooms,
                          "out of host memory");
  }
  return End(oom, counts, "out of memory");
}

}  // namespace

Verdict AfterOutcome(const TrialOutcome& outcome, const RetryCounts& counts,
                     const OomCircumstances& at, const RetryLimits& limits) {
  if (const auto* oom = std::get_if<OutOfMemory>(&outcome)) {
    return AfterOom(*oom, counts, at, limits);
  }
  if (const auto* failed = std::get_if<Failed>(&outcome);
      failed != nullptr && IsTransient(failed->failure_class)) {
    return WithinBudget(outcome, counts, &RetryCounts::transient_failures,
                        limits.transient_failures,
                        absl::StrCat("transient failure (", Name(failed->failure_class), ")"));
  }
  return End(outcome, counts, "");
}

Verdict AfterWorkerLoss(const RetryCounts& counts, int64_t workers_killed,
                        const RetryLimits& limits) {
  if (workers_killed >= limits.workers_killed) {
    RetryCounts counted = counts;
    ++counted.worker_losses;
    const std::string note =
        absl::StrCat("lost ", workers_killed, " different workers while this trial ran");
    return End(Failed{.failure_class = FailureClass::kWorkerLost, .message = note}, counted, note);
  }
  const Failed lost{.failure_class = FailureClass::kWorkerLost,
                    .message = absl::StrCat("worker lost ", counts.worker_losses + 1, " times")};
  return WithinBudget(lost, counts, &RetryCounts::worker_losses, limits.worker_losses,
                      "worker lost");
}

Verdict AfterTakeover(const RetryCounts& counts, const RetryLimits& limits) {
  const std::string what = "another process took the name of a worker that had fallen silent";
  return WithinBudget(Failed{.failure_class = FailureClass::kWorkerLost, .message = what}, counts,
                      &RetryCounts::takeovers, limits.takeovers, what);
}

Verdict AfterRelease(ReleaseReason reason, Bytes needed, const std::string& note,
                     const RetryCounts& counts, const OomCircumstances& at,
                     const RetryLimits& limits) {
  switch (reason) {
    case ReleaseReason::kPreempted: {
      RetryCounts counted = counts;
      ++counted.preemptions;
      return Verdict{.counts = counted, .note = "preempted"};
    }
    case ReleaseReason::kRejected: {
      const OutOfMemory oom{
          .kind = needed > at.limit ? OomKind::kConfiguration : OomKind::kDirtyDevice,
          .predicted = true,
          .limit = at.limit,
          .needed = needed,
          .message = absl::StrCat("needs ", FormatBytes(needed), ", allowed ",
                                  FormatBytes(at.limit), note.empty() ? "" : ": ", note)};
      return AfterOom(oom, counts, at, limits);
    }
    case ReleaseReason::kUnhealthy: {
      const Failed failed{.failure_class = FailureClass::kDeviceLost, .message = note};
      return WithinBudget(failed, counts, &RetryCounts::worker_losses, limits.worker_losses,
                          "worker unhealthy");
    }
  }
  return Verdict{.counts = counts};
}

}  // namespace hpo::server
