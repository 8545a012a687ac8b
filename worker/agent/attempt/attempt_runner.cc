// Tested by tests/worker/agent/loop/agent_loop_test.cc.
#include "worker/agent/attempt/attempt_runner.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/command_line/terminal_text.h"
#include "common/files/read_file.h"
#include "spdlog/spdlog.h"
#include "worker/agent/attempt/runs_folder.h"
#include "worker/agent/process/exit_outcome.h"
#include "worker/agent/process/poll_timeout.h"
#include "worker/agent/process/trainer_line.h"
#include "worker/agent/process/unique_fd.h"
#include "worker/agent/session/report_queue.h"

namespace hpo::agent {
namespace {

constexpr absl::Duration kWriteTimeout = absl::Seconds(10);
constexpr absl::Duration kGivingBackTime = absl::Seconds(30);
constexpr int kLogTailLines = 20;
constexpr char kOutOfMemoryStage[] = "OOM Error";
constexpr char kHostGrowth[] = "host memory, over several attempts";

int64_t FileSize(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

// The attempt's part of the process's log, beside its other files: all of it, or no file.
//   see FileError  the disk is full, or one of both cannot be opened
absl::Status CopyLogFrom(const std::string& path, int64_t from, const std::string& output_dir) {
  constexpr size_t kMostAtOnce = size_t{1} << 30;
  const std::string copy_path = absl::StrCat(output_dir, "/", kTrainerLog);
  const UniqueFd log(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!log.ok()) return FileError(errno, path);
  const UniqueFd copy(open(copy_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!copy.ok()) return FileError(errno, copy_path);
  off_t at = from;
  ssize_t count = 0;
  do {
    count = sendfile(copy.get(), log.get(), &at, kMostAtOnce);
  } while (count > 0);
  if (count == 0) return absl::OkStatus();
  const int error = errno;
  unlink(copy_path.c_str());
  return FileError(error, copy_path);
}

std::string LastLine(absl::string_view text) {
  text = absl::StripTrailingAsciiWhitespace(text);
  return std::string(text.substr(text.rfind('\n') + 1));
}

class RunningAttempt {
 public:
  RunningAttempt(const AttemptServices& services, const AttemptOptions& options,
                 const LeaseRef& lease, const TrainerJob& job)
      : services_(services),
        options_(options),
        job_(job),
        process_(services.slot.process()),
        log_start_(FileSize(process_.log_path())),
        oom_kills_before_(services.count_oom_kills()),
        reports_(services.client, services.session, lease,
                 Backoff(options.first_report_retry, options.longest_report_retry,
                         static_cast<uint64_t>(job.trial.value))) {
    TellEndingTime();
    beat_.lease = lease;
    end_.plan = job.task.plan;
    end_.limit = job.task.limit;
  }

  AttemptEnd Run() {
    const absl::Status handed = process_.channel().WriteLine(EncodeDown(job_), kWriteTimeout);
    if (!handed.ok()) {
      spdlog::debug("handing the job over: {}", handed.ToString());
    }
    while (!Over()) {
      WaitForNews();
      TakeSignals();
      TakeLines();
      ReportIfDue();
      KillIfOverdue();
    }
    return Conclude();
  }

 private:
  // The trainer has said its last word.
  bool Over() { return end_.outcome || exit_ || end_.undying; }

  void WaitForNews() {
    pollfd events[] = {
        {.fd = closed_ ? -1 : process_.channel().fd(), .events = POLLIN, .revents = 0},
        {.fd = process_.exit_fd(), .events = POLLIN, .revents = 0},
        {.fd = services_.wake.fd(), .events = POLLIN, .revents = 0},
        {.fd = services_.stop.fd(), .events = POLLIN, .revents = 0}};
    absl::Duration timeout = absl::Seconds(60);
    if (reports_.due()) timeout = std::min(timeout, *reports_.due() - clock_.Monotonic());
    if (const auto kill_at = KillAt()) timeout = std::min(timeout, *kill_at - clock_.Monotonic());
    poll(events, 4, PollTimeout(timeout));
    if (events[2].revents != 0) services_.wake.Clear();
    if (events[3].revents != 0) services_.stop.Clear();
    // Before its lines are read, so that none that it wrote can be missed.
    exit_ = process_.Poll();
  }

  void Obey(Directive directive) {
    switch (directive) {
      case Directive::kContinue:
        break;
      case Directive::kStopPruned:
        Stop(StopCause::kPruned);
        break;
      case Directive::kLeaseLost:
        Stop(StopCause::kLeaseLost);
        break;
      case Directive::kCancelled:
        Stop(StopCause::kCancelled);
        break;
      case Directive::kPreempted:
        Stop(StopCause::kPreempted);
        break;
      case Directive::kTimeLimit:
        StopAtTimeLimit();
        break;
    }
  }

  void TakeSignals() {
    Obey(services_.keeper.DirectiveFor(beat_.lease));
    if (services_.stop.raised()) Stop(StopCause::kDrain);
    if (services_.stop.level() == StopLevel::kNow) kill_at_ = absl::ZeroDuration();
  }

  void StopAtTimeLimit() {
    if (end_.stop_cause >= StopCause::kTimeLimit) return;
    end_.pruner = kTimeLimitPruner;
    Stop(StopCause::kTimeLimit);
  }

  // Tells the trainer once, whatever other causes come up afterwards.
  void Stop(StopCause cause) {
    if (cause <= end_.stop_cause) return;
    const bool told = end_.stop_cause != StopCause::kNone;
    end_.stop_cause = cause;
    if (told) return;
    const StopRequest request{.reason = StopReason(cause),
                              .checkpoint = cause <= StopCause::kDrain};
    const bool asked = services_.slot.hello().Has("stop") &&
                       process_.channel().WriteLine(EncodeDown(request), kWriteTimeout).ok();
    if (asked) {
      stopped_at_ = clock_.Monotonic();
    } else {
      kill_at_ = absl::ZeroDuration();
    }
    spdlog::info(
        "trial #{}: stopping the trainer ({}){}", job_.trial.value, StopReason(cause),
        asked ? absl::StrCat(": it has ",
                             absl::FormatDuration(absl::Trunc(StopGrace(), absl::Seconds(1))),
                             " to end")
              : "");
  }

  absl::Duration StopGrace() const {
    return std::max(options_.stop_grace, std::min(stop_time_, options_.longest_stop_grace));
  }

  // Before a time limit the worker has to know it, too.
  void TellEndingTime() { services_.stop.SetEndingTime(StopGrace() + kGivingBackTime); }

  void KillAfter(absl::Duration grace) {
    const absl::Duration at = clock_.Monotonic() + grace;
    kill_at_ = kill_at_ ? std::min(*kill_at_, at) : at;
  }

  // A trainer that was told to stop and says so gets its whole time again with each line.
  std::optional<absl::Duration> KillAt() const {
    if (!stopped_at_) return kill_at_;
    const absl::Duration longest = std::max(options_.stop_grace, options_.longest_stop_grace);
    const absl::Duration at =
        std::min(std::max(*stopped_at_, said_at_) + StopGrace(), *stopped_at_ + longest);
    return kill_at_ ? std::min(*kill_at_, at) : at;
  }

  void KillIfOverdue() {
    const std::optional<absl::Duration> kill_at = KillAt();
    if (Over() || !kill_at || clock_.Monotonic() < *kill_at) return;
    exit_ = process_.Kill();
    end_.killed_by_agent = true;
    if (!exit_) {
      end_.undying = process_.pid();
    } else if (closed_ && end_.stop_cause == StopCause::kNone && end_.protocol_error.empty()) {
      end_.protocol_error =
          "the trainer closed file descriptor 3 and ran on: expected an outcome line first";
    }
  }

  void TakeLines() {
    if (closed_) return;
    absl::StatusOr<ReceivedLines> received = process_.channel().ReadAvailable();
    if (!received.ok()) {
      Violation(std::string(received.status().message()));
      closed_ = true;
      return;
    }
    for (const std::string& line : received->lines) {
      if (end_.outcome || !end_.protocol_error.empty()) break;
      TakeLine(line);
    }
    closed_ = received->closed;
    if (!received->torn.empty() && !end_.outcome) {
      spdlog::debug("trial #{}: the trainer's last line is torn", job_.trial.value);
    }
    if (closed_) KillAfter(options_.exit_grace);
  }

  void TakeLine(const std::string& line) {
    absl::StatusOr<UpMessage> message = ReadTrainerLine(line);
    if (!message.ok()) {
      Violation(absl::StrCat("the trainer sent '", line.substr(0, 120),
                             "': ", message.status().message()));
      return;
    }
    std::visit([this](auto& body) { Take(body); }, *message);
  }

  // Nothing that follows can be trusted.
  void Violation(std::string what) {
    if (end_.protocol_error.empty()) {
      end_.protocol_error = std::move(what);
    }
    kill_at_ = absl::ZeroDuration();
  }

  void Take(const Hello&) {
    Violation("the trainer sent a second hello: expected one per process");
  }

  void Take(const MeasurementMessage& message) {
    end_.last_measurement = message.measurement;
    reports_.AddMeasurement(message.measurement);
    Progress(message.measurement.step);
  }

  void Take(const MemoryMessage& message) {
    spdlog::info("trial #{}: {}: allocated {}, reserved {}, peak {}", job_.trial.value,
                 message.stage, FormatBytes(message.allocated), FormatBytes(message.reserved),
                 FormatBytes(message.peak));
    end_.stage = message.stage;
    beat_.stage = message.stage;
    beat_.allocated = message.allocated;
    beat_.reserved = message.reserved;
    live_peak_ = std::max(live_peak_, message.peak);
    reports_.AddMemoryRecord(message);
    last_memory_ = {.allocated = message.allocated,
                    .reserved = message.reserved,
                    .free = message.free,
                    .total = message.total,
                    .peak = message.peak,
                    .step = message.step,
                    .resident = message.resident};
    if (message.stage == kOutOfMemoryStage) reports_.AddOom();
    if (message.plan) {
      end_.plan = *message.plan;
      reports_.AddPlan(end_.plan);
    }
    Progress(message.step);
  }

  void Take(const CheckpointMessage& message) {
    spdlog::debug("trial #{}: checkpoint ({}) {}", job_.trial.value, message.kind, message.path);
    if (message.kind == "best") best_path_ = message.path;
    Progress(message.step);
  }

  void Take(const ProgressMessage& message) {
    Progress(message.step);
    if (message.stop_time <= absl::ZeroDuration()) return;
    stop_time_ = message.stop_time;
    said_at_ = clock_.Monotonic();
    TellEndingTime();
  }

  void Take(const LogMessage& message) {
    const auto level = message.level == "error"     ? spdlog::level::err
                       : message.level == "warning" ? spdlog::level::warn
                                                    : spdlog::level::info;
    spdlog::log(level, "trial #{}: {}", job_.trial.value, message.text);
  }

  void Take(const AttributesMessage& message) { reports_.AddAttributes(message.attributes); }

  void Take(const OutcomeMessage& message) { end_.outcome = message; }

  void Progress(int64_t step) {
    beat_.step = std::max(beat_.step, step);
    services_.keeper.Update(beat_);
  }

  void ReportIfDue() {
    if (end_.outcome) return;  // what is left goes with the result
    const ReportAnswer answer = reports_.SendIfDue();
    Obey(answer.directive);
    if (answer.verdict == ReportAnswer::Verdict::kContinue) return;
    spdlog::info("trial #{}: {}", job_.trial.value, answer.why);
    if (answer.verdict == ReportAnswer::Verdict::kLeaseLost) {
      Stop(StopCause::kLeaseLost);
      return;
    }
    if (answer.pruner == kTimeLimitPruner) {
      StopAtTimeLimit();
      return;
    }
    end_.pruner = answer.pruner;
    Stop(StopCause::kPruned);
  }

  AttemptEnd Conclude() {
    services_.stop.SetEndingTime(StopSignal::kEndingTime);
    SettleTrainer();
    if (const absl::Status copied = CopyLogFrom(process_log_, log_start_, job_.output_dir);
        !copied.ok()) {
      spdlog::warn("trial #{}: its part of the trainer's output is not kept: {}", job_.trial.value,
                   std::string(copied.message()));
    }
    AttemptEnd end;
    if (end_.stop_cause == StopCause::kLeaseLost) {
      end.lease_lost = true;
      return end;
    }
    if (CannotStart(end_)) {
      end.cannot_start = LastLine(end_.log_tail);
      return end;
    }
    std::optional<TrialOutcome> outcome = JudgeAttempt(end_);
    if (!outcome) {
      reports_.SendLast();
      end.give_back =
          end_.stop_cause == StopCause::kPreempted ? "ordered by the server" : "the worker stops";
      return end;
    }
    if (auto* oom = std::get_if<OutOfMemory>(&*outcome)) FillIn(*oom);
    if (auto* completed = std::get_if<Completed>(&*outcome);
        completed != nullptr && completed->model_path.empty()) {
      completed->model_path = ModelLeftIn(job_.output_dir);
    }
    FinishRequest& finish = end.finish.emplace();
    finish.lease = beat_.lease;
    finish.outcome = *std::move(outcome);
    finish.memory = MemoryUsed();
    finish.final_plan = end_.outcome && plans_ ? end_.outcome->final_plan : end_.plan;
    reports_.MoveUnsentTo(finish);
    end.best_path = std::move(best_path_);
    return end;
  }

  // Leaves the slot with a warm trainer or none; takes down what is needed of the process first.
  void SettleTrainer() {
    process_log_ = process_.log_path();
    if (end_.outcome) {
      const Bytes tensors = job_.device == "cpu" ? MemoryUsed().live_peak : Bytes{};
      if (const auto growth = services_.slot.AttemptEnded(end_.outcome->clean, tensors)) {
        TellHostGrowth(*growth);
      }
      return;
    }
    end_.exit = exit_.value_or(ProcessExit{});
    end_.log_tail = ShownLines(LogTail(process_log_, log_start_, kLogTailLines));
    end_.oom_kills = services_.count_oom_kills() - oom_kills_before_;
    services_.slot.Discard();
  }

  void TellHostGrowth(Bytes growth) {
    host_growth_ = growth;
    spdlog::warn(
        "trial #{}: the trainer's host memory grows from attempt to attempt, by {} in {}: "
        "the next one gets a new process",
        job_.trial.value, FormatBytes(growth), ResidentWatch::kAttempts);
    MemoryMessage record = last_memory_;
    record.stage = "Growth";
    record.growth = growth;
    record.growth_stage = kHostGrowth;
    reports_.AddMemoryRecord(record);
  }

  // A simple trainer says only that it happened. The server counts in bytes of the device, a
  // trainer in bytes of its allocator: the base lies between them. It is none of the host's.
  void FillIn(OutOfMemory& oom) const {
    if (oom.limit == Bytes{}) oom.limit = job_.task.limit;
    if (oom.kind != OomKind::kHost) {
      oom.limit += services_.base;
      if (oom.needed > Bytes{}) oom.needed += services_.base;
    }
    if (!plans_) oom.plan = end_.plan;
    if (oom.step == 0) oom.step = beat_.step;
  }

  // What the trainer says at its end counts; what it lacks is taken from its memory lines.
  MemoryReport MemoryUsed() const {
    MemoryReport report = end_.outcome ? end_.outcome->memory : MemoryReport{};
    if (report.live_peak == Bytes{}) report.live_peak = live_peak_;
    if (report.limit == Bytes{}) report.limit = job_.task.limit;
    report.limit += services_.base;
    if (report.device_peak == Bytes{} && report.reserved_peak > Bytes{}) {
      report.device_peak = report.reserved_peak + services_.base;
    }
    if (report.growth == Bytes{} && host_growth_ > Bytes{}) {
      report.growth = host_growth_;
      report.growth_stage = kHostGrowth;
    }
    report.num_ooms = std::max(report.num_ooms, reports_.num_ooms());
    report.num_replans = std::max(report.num_replans, reports_.num_replans());
    return report;
  }

  const AttemptServices& services_;
  const AttemptOptions& options_;
  const TrainerJob& job_;
  TrainerProcess& process_;
  const SystemClock clock_;
  int64_t log_start_;
  int64_t oom_kills_before_;
  std::string process_log_;

  TrainerEnd end_;
  std::string best_path_;
  LeaseBeat beat_;
  bool closed_ = false;
  std::optional<ProcessExit> exit_;

  // A trainer that does not speak of plans ran what it was given.
  const bool plans_ = services_.slot.hello().Has("plan");

  // Monotonic times.
  std::optional<absl::Duration> kill_at_;  // whatever the trainer says
  std::optional<absl::Duration> stopped_at_;
  absl::Duration said_at_;
  absl::Duration stop_time_;  // what it said then

  Bytes live_peak_;
  Bytes host_growth_;
  MemoryMessage last_memory_;  // without a plan
  ReportQueue reports_;
};

}  // namespace

AttemptEnd EndBeforeStart(const Assignment& assignment, const absl::Status& why) {
  const Failed failed{.failure_class = FailureClass::kBadConfiguration,
                      .message = std::string(why.message())};
  return {.finish = FinishRequest{
              .lease = assignment.lease, .outcome = failed, .final_plan = assignment.task.plan}};
}

AttemptEnd RunAttempt(const AttemptServices& services, const AttemptOptions& options,
                      const LeaseRef& lease, const TrainerJob& job) {
  return RunningAttempt(services, options, lease, job).Run();
}

}  // namespace hpo::agent
