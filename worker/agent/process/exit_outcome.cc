#include "worker/agent/process/exit_outcome.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files/spawn.h"
#include "common/study/outcome_text.h"

namespace hpo::agent {
namespace {

constexpr char kHostGrowth[] = "host memory, over several attempts";

std::string WithLog(std::string message, const TrainerEnd& end) {
  if (!end.log_tail.empty()) {
    absl::StrAppend(&message, kLastOutput, "\n", end.log_tail);
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

Failed Undying(pid_t pid, const TrainerEnd& end) {
  return Failed{
      .failure_class = FailureClass::kTrainerKilled,
      .message = WithLog(absl::StrCat("the trainer (pid ", pid,
                                      ") did not end after SIGKILL: it waits in the kernel, as for "
                                      "a device driver or a file system that hangs"),
                         end)};
}

// Status 0 without an outcome line: what was measured last is the result.
TrialOutcome DoneWithoutOutcome(const TrainerEnd& end) {
  if (end.last_measurement) return Completed{.metrics = end.last_measurement->metrics};
  return Protocol(
      "the trainer exited with status 0: expected an outcome or a measurement, got none", end);
}

StoppedByPruner PrunedWithoutOutcome(const TrainerEnd& end) {
  StoppedByPruner pruned{.pruner = end.pruner.empty() ? "trainer" : end.pruner};
  if (end.last_measurement) {
    pruned.step = end.last_measurement->step;
    pruned.metrics = end.last_measurement->metrics;
  }
  return pruned;
}

TrialOutcome FromStatus(int status, const TrainerEnd& end) {
  switch (status) {
    case trainer_exit::kDone:
      return DoneWithoutOutcome(end);
    case trainer_exit::kPruned:
      return PrunedWithoutOutcome(end);
    case trainer_exit::kOutOfDeviceMemory:
      return MemoryEnd(OomKind::kConfiguration,
                       "the trainer reported out of device memory (status 20)", end);
    case trainer_exit::kOutOfHostMemory:
      return MemoryEnd(OomKind::kHost, "the trainer reported out of host memory (status 21)", end);
    case trainer_exit::kDiverged:
      return Failure(FailureClass::kDiverged, end);
    case trainer_exit::kBadData:
      return Failure(FailureClass::kBadData, end);
    case trainer_exit::kBadModel:
      return Failure(FailureClass::kBadModel, end);
    case trainer_exit::kCancelled:
      return Cancelled{.reason = "the trainer was stopped by its user (status 25)"};
    case trainer_exit::kUsage:
    case trainer_exit::kConfiguration:
      return Failure(FailureClass::kBadConfiguration, end);
    case trainer_exit::kInternal:
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

// "outcome": null.
bool StoppedWithoutResult(const TrainerEnd& end) { return end.outcome && !end.outcome->outcome; }

// A result that came before the trainer heard of the drain counts. Being stopped does not.
std::optional<TrialOutcome> JudgeDrained(const TrainerEnd& end) {
  if (!end.outcome || !end.outcome->outcome) return std::nullopt;
  const TrialOutcome& outcome = *end.outcome->outcome;
  if (std::holds_alternative<StoppedByPruner>(outcome) ||
      std::holds_alternative<Cancelled>(outcome)) {
    return std::nullopt;
  }
  return outcome;
}

// A trainer that had to be killed, or has nothing to say, is pruned with what it measured last.
TrialOutcome JudgePruned(const TrainerEnd& end) {
  const bool spoke = (end.outcome && end.outcome->outcome) || !end.protocol_error.empty();
  if (StoppedWithoutResult(end) || (end.killed_by_agent && !spoke)) {
    StoppedByPruner pruned = PrunedWithoutOutcome(end);
    if (end.pruner.empty()) pruned.pruner = "server";
    return pruned;
  }
  TrialOutcome outcome = ClassifyEnd(end);
  if (auto* pruned = std::get_if<StoppedByPruner>(&outcome); pruned && !end.pruner.empty()) {
    pruned->pruner = end.pruner;
  }
  return outcome;
}

// A simple trainer says only that it happened. The base is none of the host's.
void FillIn(OutOfMemory& oom, const TrainerEnd& end) {
  if (oom.limit == Bytes{}) oom.limit = end.limit;
  if (oom.kind != OomKind::kHost) {
    oom.limit += end.base;
    if (oom.needed > Bytes{}) oom.needed += end.base;
  }
  if (!end.plans) oom.plan = end.plan;
  if (oom.step == 0) oom.step = end.beat.step;
}

}  // namespace

const char* StopReason(StopCause cause) {
  switch (cause) {
    case StopCause::kTimeLimit:
      return "time limit";
    case StopCause::kPruned:
      return "pruned";
    case StopCause::kCancelled:
      return "cancelled";
    case StopCause::kLeaseLost:
      return "lease lost";
    case StopCause::kPreempted:
      return "preempted";
    case StopCause::kNone:
    case StopCause::kDrain:
      break;
  }
  return "drain";
}

bool CannotStart(const TrainerEnd& end) {
  return !end.outcome && !end.undying && !end.killed_by_agent && end.protocol_error.empty() &&
         !end.last_measurement && end.exit.code == trainer_exit::kCannotStart;
}

std::optional<TrialOutcome> JudgeAttempt(const TrainerEnd& end) {
  switch (end.stop_cause) {
    case StopCause::kLeaseLost:
      return std::nullopt;
    case StopCause::kPreempted:
    case StopCause::kDrain:
      return JudgeDrained(end);
    case StopCause::kCancelled:
      return Cancelled{.reason = "cancelled on the server"};
    case StopCause::kTimeLimit:
    case StopCause::kPruned:
      return JudgePruned(end);
    case StopCause::kNone:
      break;
  }
  if (StoppedWithoutResult(end)) {
    return Protocol(
        "the trainer ended the attempt without a result, and nobody had asked it to stop", end);
  }
  return ClassifyEnd(end);
}

TrialOutcome ClassifyEnd(const TrainerEnd& end) {
  if (end.outcome && end.outcome->outcome) return *end.outcome->outcome;
  if (!end.protocol_error.empty()) return Protocol(end.protocol_error, end);
  if (end.undying) return Undying(*end.undying, end);
  if (end.exit.signal) return FromSignal(*end.exit.signal, end);
  return FromStatus(end.exit.code.value_or(trainer_exit::kInternal), end);
}

MemoryReport MemoryUsed(const TrainerEnd& end) {
  MemoryReport report = end.outcome ? end.outcome->memory : MemoryReport{};
  if (report.live_peak == Bytes{}) report.live_peak = end.live_peak;
  if (report.limit == Bytes{}) report.limit = end.limit;
  report.limit += end.base;
  if (report.device_peak == Bytes{} && report.reserved_peak > Bytes{}) {
    report.device_peak = report.reserved_peak + end.base;
  }
  if (report.growth == Bytes{} && end.host_growth > Bytes{}) {
    report.growth = end.host_growth;
    report.growth_stage = kHostGrowth;
  }
  report.num_ooms = std::max(report.num_ooms, end.num_ooms);
  report.num_replans = std::max(report.num_replans, end.num_replans);
  return report;
}

MemoryRecord GrowthRecord(const TrainerEnd& end) {
  return {.stage = "Growth",
          .allocated = end.memory.allocated,
          .reserved = end.memory.reserved,
          .free = end.memory.free,
          .total = end.memory.total,
          .peak = end.memory.peak,
          .plan = std::nullopt,
          .step = end.memory.step,
          .resident = end.memory.resident,
          .growth = end.host_growth,
          .growth_stage = kHostGrowth};
}

FinishRequest ResultOf(TrialOutcome outcome, const TrainerEnd& end) {
  if (auto* const oom = std::get_if<OutOfMemory>(&outcome)) FillIn(*oom, end);
  return {.lease = end.beat.lease,
          .outcome = std::move(outcome),
          .memory = MemoryUsed(end),
          .final_plan = end.outcome && end.plans ? end.outcome->final_plan : end.plan,
          .measurements = {},
          .memory_records = {}};
}

std::string DescribeExit(const ProcessExit& exit) {
  if (exit.signal) return absl::StrCat("was killed by ", SignalName(*exit.signal));
  return absl::StrCat("exited with status ", exit.code.value_or(-1));
}

}  // namespace hpo::agent
