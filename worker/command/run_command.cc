#include "worker/command/run_command.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/device/process_tree.h"
#include "common/files/read_file.h"
#include "worker/command/card_watch.h"
#include "worker/command/child_process.h"
#include "worker/command/judge_run.h"
#include "worker/command/program_files.h"

namespace hpo::command {
namespace {

constexpr absl::Duration kPollTime = absl::Milliseconds(50);
constexpr absl::Duration kMemoryTime = absl::Milliseconds(200);
// What a program's children may still print once it has ended itself.
constexpr absl::Duration kLastWords = absl::Seconds(1);
// From the end of a program that an engine has told to end, to the stop request of the worker.
constexpr absl::Duration kWorkersTurn = absl::Seconds(5);
// From SIGTERM to SIGKILL where nobody waits for the trial any more.
constexpr absl::Duration kAbandonedGrace = absl::Milliseconds(500);

using FileTime = std::optional<std::filesystem::file_time_type>;

FileTime WrittenAt(const std::string& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  return error ? FileTime() : time;
}

RunExit ExitOf(int status) {
  if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
  const int code = WEXITSTATUS(status);
  if (code > 128 && code < 128 + NSIG) return {.signal = code - 128};
  return {.code = code};
}

// The GPUs as they are now; none where they cannot be watched.
std::vector<CardWatch> WatchCards(GpuProbe* probe, const std::vector<std::string>& uuids) {
  std::vector<CardWatch> watches;
  if (probe == nullptr) return watches;
  const absl::StatusOr<std::vector<GpuState>> cards = probe->List();
  if (!cards.ok()) return watches;
  for (const GpuState& card : *cards) {
    if (std::find(uuids.begin(), uuids.end(), card.uuid) == uuids.end()) continue;
    watches.emplace_back(*probe, card, HasTheDriversProcessNumbers());
  }
  return watches;
}

class CommandRun {
 public:
  CommandRun(const CommandOptions& options, const TrainerJob& job, MemoryPlan plan,
             std::vector<CardWatch> cards, EventSink& events, StopSource& stop)
      : options_(options),
        job_(job),
        cards_(std::move(cards)),
        events_(events),
        stop_(stop),
        reader_(job.task.objective.metric, options.patterns),
        facts_{.limit = job.task.limit,
               .plan = plan,
               .objective = job.task.objective.metric,
               .command_text = options.command.PlainText()} {}

  // Once.
  RunVerdict Run() {
    const std::map<std::string, std::string> values = JobValues(job_, facts_.plan);
    const absl::StatusOr<std::string> command =
        options_.command.Fill(job_.task.params, values, /*for_shell=*/true);
    if (!command.ok()) return Misconfigured("--trainer", command.status());
    absl::StatusOr<std::string> metrics_file =
        options_.metrics_file.Fill(job_.task.params, values, /*for_shell=*/false);
    if (!metrics_file.ok()) return Misconfigured("--metrics-file", metrics_file.status());
    facts_.metrics_file = *std::move(metrics_file);
    const absl::Status configured = WriteConfigs(options_.command, job_, values);
    if (!configured.ok()) return CannotRun(configured);
    const FileTime before = WrittenAt(facts_.metrics_file);
    TrainerJob planned = job_;
    planned.task.plan = facts_.plan;
    absl::StatusOr<std::unique_ptr<ChildProcess>> child =
        ChildProcess::Start(*command, ProgramEnvironment(planned));
    if (!child.ok()) return CannotRun(child.status());
    Watch(**child);
    if (!facts_.stop_reason && TerminationSeen()) AwaitStop();
    Send(reader_.Finish());
    if (const size_t more = reader_.num_left_out(); more > 0) {
      events_.Send(LogMessage{
          .level = "warning",
          .text = absl::StrCat("a dict that the program printed has ", more,
                               " metrics beyond the limits, which are left out: at most ",
                               kMetricLimit.most, ", with names of at most ", kNameLimit.most,
                               " bytes")});
    }
    facts_.exit = ExitOf((*child)->End());
    if (on_cpu()) facts_.peak = std::max(facts_.peak, (*child)->largest_resident());
    facts_.metrics_text = MetricsText(before);
    return JudgeRun(facts_, reader_);
  }

  bool stopped() const { return facts_.stop_reason.has_value(); }
  // Of the device's memory; 0 where a card is not seen.
  Bytes peak() const { return facts_.peak; }

 private:
  bool on_cpu() const { return job_.device == "cpu"; }
  // Also where the worker is gone (MessageChannel).
  bool is_abandoned() const { return facts_.stop_reason == "lease lost"; }

  static RunVerdict Misconfigured(const char* option, const absl::Status& status) {
    return {Failed{.failure_class = FailureClass::kBadConfiguration,
                   .message = absl::StrCat(option, ": ", status.message())}};
  }

  static RunVerdict CannotRun(const absl::Status& status) {
    return {
        Failed{.failure_class = FailureClass::kInternal, .message = std::string(status.message())}};
  }

  void Send(const std::vector<Measurement>& measured) {
    for (const Measurement& measurement : measured) events_.Send(MeasurementMessage{measurement});
  }

  void Watch(ChildProcess& child) {
    absl::Time kill_at = absl::InfiniteFuture();
    absl::Time look_at = absl::InfinitePast();
    absl::Time quiet_at = absl::InfiniteFuture();
    const auto on_line = [this](absl::string_view line, bool overwritten) {
      Send(reader_.Take(line, overwritten));
    };
    while (child.ReadLines(kPollTime, on_line) || !child.HasEnded()) {
      const absl::Time now = absl::Now();
      const bool ended = child.HasEnded();
      if (ended) quiet_at = std::min(quiet_at, now + kLastWords);
      if (now >= quiet_at || (ended && is_abandoned())) return;
      if (!facts_.stop_reason) {
        if (const std::optional<StopRequest> asked = stop_.Poll()) {
          facts_.stop_reason = asked->reason;
          // Who was told by the engine must not be told twice: that can end a program that saves.
          if (!TerminationSeen()) child.Signal(SIGTERM);
          kill_at = now + (is_abandoned() ? std::min(kAbandonedGrace, options_.stop_grace)
                                          : options_.stop_grace);
        }
      }
      // What it prints is not understood, so that what it may still find is lost.
      if (!reader_.error().ok() && kill_at == absl::InfiniteFuture()) {
        child.Signal(SIGTERM);
        kill_at = now + options_.stop_grace;
      }
      if (now >= look_at) {
        look_at = now + kMemoryTime;
        WatchMemory(child);
      }
      if (now >= kill_at) child.Signal(SIGKILL);
    }
  }

  // An engine has told the program to end before the worker, which was told as well, could say so:
  // it is no failure of the program's.
  void AwaitStop() {
    const absl::Time until = absl::Now() + kWorkersTurn;
    while (absl::Now() < until) {
      if (const std::optional<StopRequest> asked = stop_.Poll()) {
        facts_.stop_reason = asked->reason;
        return;
      }
      poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(kPollTime)));
    }
  }

  void WatchMemory(ChildProcess& child) {
    // The limit of a trial is that of its smallest GPU, so its peak is that of the fullest.
    const std::vector<pid_t> program =
        cards_.empty() ? std::vector<pid_t>() : Descendants(getpid());
    for (CardWatch& card : cards_) facts_.peak = std::max(facts_.peak, card.Held(program));
    if (!on_cpu() || facts_.over_limit) return;
    facts_.peak = std::max(facts_.peak, child.Resident());
    if (facts_.limit.count == 0 || facts_.peak <= facts_.limit) return;
    facts_.over_limit = true;
    child.Signal(SIGKILL);
  }

  // What the metrics file holds, where this run has written it.
  absl::StatusOr<std::string> MetricsText(const FileTime& before) const {
    if (facts_.metrics_file.empty()) return std::string();
    if (WrittenAt(facts_.metrics_file) == before) {
      return absl::NotFoundError("which it has not written");
    }
    return ReadFile(facts_.metrics_file);
  }

  const CommandOptions& options_;
  const TrainerJob& job_;
  std::vector<CardWatch> cards_;
  EventSink& events_;
  StopSource& stop_;
  MetricReader reader_;
  RunFacts facts_;
};

}  // namespace

CommandEnd RunCommand(const CommandOptions& options, const TrainerJob& job, EventSink& events,
                      StopSource& stop, GpuProbe* probe, const std::vector<std::string>& cards) {
  CommandEnd end;
  MemoryPlan plan = PlanOfRank(job.task.plan, job.task.trainer.gpus);
  MemoryReport& memory = end.message.memory;
  memory.limit = job.task.limit;
  Bytes& peak = job.device == "cpu" ? memory.live_peak : memory.device_peak;
  for (;;) {
    CommandRun run(options, job, plan, WatchCards(probe, cards), events, stop);
    RunVerdict verdict = run.Run();
    end.signal = verdict.signal;
    end.cannot_start = std::move(verdict.cannot_start);
    end.message.outcome = std::move(verdict.outcome);
    end.message.final_plan = plan;
    peak = std::max(peak, run.peak());
    const auto* const oom =
        end.message.outcome ? std::get_if<OutOfMemory>(&*end.message.outcome) : nullptr;
    if (oom == nullptr) return end;
    ++memory.num_ooms;
    events.Send(MemoryMessage{.stage = "OOM Error",
                              .peak = run.peak(),
                              .predicted = job.task.predicted,
                              .step = oom->step});
    const bool may_plan = options.Plans() && job.task.memory.policy == MemoryPolicy::kPlan;
    if (!may_plan || plan.micro_batch <= 1 || run.stopped()) return end;
    plan.micro_batch /= 2;
    ++memory.num_replans;
    events.Send(LogMessage{.level = "warning",
                           .text = absl::StrCat(oom->message, "; runs again with the micro-batch ",
                                                plan.micro_batch)});
    events.Send(MemoryMessage{.stage = "replan", .plan = plan});
  }
}

}  // namespace hpo::command
