#include "worker/agent/exit_outcome.h"

#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hpo {
namespace {

enum TrainerStatus {
  kDone = 0,
  kPruned = 10,
  kOutOfDeviceMemory = 20,
  kOutOfHostMemory = 21,
  kDiverged = 22,
  kBadData = 23,
  kBadModel = 24,
  kUserAbort = 25,
  kUsage = 64,          // EX_USAGE
  kConfiguration = 78,  // EX_CONFIG
  kInternal = 99,
};

std::string WithLog(std::string message, const TrainerEnd& end) {
  if (!end.log_tail.empty()) {
    absl::StrAppend(&message, "; its last output:\n", end.log_tail);
  }
  return message;
}

Failed Failure(FailureClass failure_class, const TrainerEnd& end) {
  return Failed{.failure_class = failure_class,
                .message = WithLog(absl::StrCat("the trainer ", DescribeExit(end.exit)), end)};
}

OutOfMemory MemoryEnd(OomKind kind, std::string message, const TrainerEnd& end) {
  OutOfMemory oom;
  oom.kind = kind;
  oom.limit = end.limit;
  oom.phase = end.stage;
  oom.step = end.last_measurement ? end.last_measurement->step : 0;
  oom.plan = end.plan;
  oom.message = std::move(message);
  oom.traceback = end.log_tail;
  return oom;
}

Failed Protocol(std::string reason, const TrainerEnd& end) {
  return Failed{.failure_class = FailureClass::kProtocol,
                .message = WithLog(std::move(reason), end)};
}

// Status 0 without an outcome line: what was measured last is the result.
TrialOutcome DoneWithoutOutcome(const TrainerEnd& end) {
  if (end.last_measurement) return Completed{.metrics = end.last_measurement->metrics};
  return Protocol(
      "the trainer exited with status 0: expected an outcome or a measurement, got none", end);
}

TrialOutcome PrunedWithoutOutcome(const TrainerEnd& end) {
  StoppedByPruner pruned{.pruner = end.pruner.empty() ? "trainer" : end.pruner};
  if (end.last_measurement) {
    pruned.step = end.last_measurement->step;
    pruned.metrics = end.last_measurement->metrics;
  }
  return pruned;
}

TrialOutcome FromStatus(int status, const TrainerEnd& end) {
  switch (status) {
    case kDone:
      return DoneWithoutOutcome(end);
    case kPruned:
      return PrunedWithoutOutcome(end);
    case kOutOfDeviceMemory:
      return MemoryEnd(OomKind::kConfiguration,
                       "the trainer reported out of device memory (status 20)", end);
    case kOutOfHostMemory:
      return MemoryEnd(OomKind::kHost, "the trainer reported out of host memory (status 21)", end);
    case kDiverged:
      return Failure(FailureClass::kDiverged, end);
    case kBadData:
      return Failure(FailureClass::kBadData, end);
    case kBadModel:
      return Failure(FailureClass::kBadModel, end);
    case kUserAbort:
      return Cancelled{.reason = "the trainer was stopped by its user (status 25)"};
    case kUsage:
    case kConfiguration:
      return Failure(FailureClass::kBadConfiguration, end);
    case kInternal:
      return Failure(FailureClass::kInternal, end);
    default:
      return Failure(FailureClass::kTrainerCrashed, end);
  }
}

TrialOutcome FromSignal(int signal, const TrainerEnd& end) {
  if (signal != SIGKILL) return Failure(FailureClass::kTrainerCrashed, end);
  if (end.oom_kills > 0) {
    return MemoryEnd(OomKind::kHost,
                     absl::StrCat("the kernel killed the trainer for want of host memory (",
                                  end.oom_kills, " out-of-memory kills during the attempt)"),
                     end);
  }
  return Failure(FailureClass::kTrainerKilled, end);
}

}  // namespace

TrialOutcome ClassifyEnd(const TrainerEnd& end) {
  if (end.outcome && end.outcome->outcome) return *end.outcome->outcome;
  if (!end.protocol_error.empty()) return Protocol(end.protocol_error, end);
  if (!end.said_hello) {
    return Protocol(absl::StrCat("the trainer ", DescribeExit(end.exit),
                                 ": expected a hello line on file "
                                 "descriptor 3 first, got none"),
                    end);
  }
  if (end.exit.signal) return FromSignal(*end.exit.signal, end);
  return FromStatus(end.exit.code.value_or(kInternal), end);
}

std::string DescribeExit(const ProcessExit& exit) {
  if (exit.signal) return absl::StrCat("was killed by ", SignalName(*exit.signal));
  return absl::StrCat("exited with status ", exit.code.value_or(-1));
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  if (name == nullptr) return absl::StrCat("signal ", signal);
  return absl::StrCat("SIG", name);
}

}  // namespace hpo
