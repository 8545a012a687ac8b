// Tested by tests/worker/agent/loop/agent_loop_test.cc.
#include "worker/agent/attempt/attempt_runner.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/last_line.h"
#include "common/base/status.h"
#include "spdlog/spdlog.h"
#include "worker/agent/attempt/attempt_log.h"
#include "worker/agent/attempt/runs_folder.h"
#include "worker/agent/process/exit_outcome.h"
#include "worker/agent/process/poll_timeout.h"
#include "worker/agent/process/trainer_line.h"
#include "worker/agent/session/report_queue.h"

namespace hpo::agent {
namespace {

constexpr absl::Duration kWriteTimeout = absl::Seconds(10);
constexpr absl::Duration kGivingBackTime = absl::Seconds(30);
constexpr int kLogTailLines = 20;
constexpr char kOutOfMemoryStage[] = "OOM Error";

class RunningAttempt {
 public:
  RunningAttempt(const AttemptServices& services, const AttemptOptions& options,
                 const LeaseRef& lease, const TrainerJob& job)
      : services_(services),
        options_(options),
        job_(job),
        process_(services.slot.process()),
        log_(process_.log_path()),
        oom_kills_before_(services.count_oom_kills()),
        reports_(services.client, services.session, lease,
                 Backoff(options.first_report_retry, options.longest_report_retry,
                         static_cast<uint64_t>(job.trial.value))) {
    end_.plan = job.task.plan;
    end_.limit = job.task.limit;
    end_.beat.lease = lease;
    end_.plans = services.slot.hello().Has("plan");
    end_.base = services.base;
    TellEndingTime();
  }

  AttemptEnd Run() {
    const absl::Status handed = process_.channel().WriteLine(EncodeDown(job_), kWriteTimeout);
    if (!handed.ok()) spdlog::debug("handing the job over: {}", handed.ToString());
    while (!state_.Over()) {
      WaitForNews();
      Advance(OrderOf(services_.keeper.DirectiveFor(end_.beat.lease)));
      Advance(services_.stop.level());
      if (!state_.closed) TakeLines();
      // What is left goes with the result.
      if (!end_.outcome) TakeAnswer(reports_.SendIfDue());
      TellLog();
      Advance(TimePassed{});
    }
    return Conclude();
  }

 private:
  // ---- The state machine (running_state.h) ----

  void Advance(const AttemptEvent& event) {
    AttemptStep step = Next(std::move(state_), event, clock_.Monotonic(), options_);
    state_ = std::move(step.state);
    if (step.action == AttemptAction::kAskToStop) AskToStop();
    if (step.action == AttemptAction::kTellEndingTime) TellEndingTime();
    if (step.action == AttemptAction::kKill) {
      Advance(TrainerKilled{process_.Kill(), process_.pid()});
    }
  }

  void AskToStop() {
    const StopCause cause = end_.stop_cause;
    const StopRequest request{.reason = StopReason(cause),
                              .checkpoint = cause <= StopCause::kDrain};
    const bool told = services_.slot.hello().Has("stop") &&
                      process_.channel().WriteLine(EncodeDown(request), kWriteTimeout).ok();
    Advance(AskedToStop{told});
    const absl::Duration grace = absl::Trunc(StopGrace(state_, options_), absl::Seconds(1));
    spdlog::info("trial #{}: stopping the trainer ({}){}", job_.trial.value, request.reason,
                 told ? absl::StrCat(": it has ", absl::FormatDuration(grace), " to end") : "");
  }

  // Before a time limit the worker has to know it, too.
  void TellEndingTime() {
    services_.stop.SetEndingTime(StopGrace(state_, options_) + kGivingBackTime);
  }

  // ---- Events ----

  void WaitForNews() {
    pollfd events[] = {
        {.fd = state_.closed ? -1 : process_.channel().fd(), .events = POLLIN, .revents = 0},
        {.fd = process_.exit_fd(), .events = POLLIN, .revents = 0},
        {.fd = services_.wake.fd(), .events = POLLIN, .revents = 0},
        {.fd = services_.stop.fd(), .events = POLLIN, .revents = 0}};
    absl::Duration until = std::max(log_.next_news(), clock_.Monotonic());
    for (const std::optional<absl::Duration>& due : {reports_.due(), KillAt(state_, options_)}) {
      until = std::min(until, due.value_or(until));
    }
    poll(events, 4, PollTimeout(until - clock_.Monotonic()));
    if (events[2].revents != 0) services_.wake.Clear();
    if (events[3].revents != 0) services_.stop.Clear();
    // Before its lines are read, so that none that it wrote can be missed.
    if (const std::optional<ProcessExit> exit = process_.Poll()) Advance(*exit);
  }

  void TakeLines() {
    const absl::StatusOr<ReceivedLines> received = process_.channel().ReadAvailable();
    if (!received.ok()) {
      Advance(ProtocolBroken{std::string(received.status().message())});
      Advance(ChannelClosed{});
      return;
    }
    for (const std::string& line : received->lines) {
      if (end_.outcome || !end_.protocol_error.empty()) break;
      TakeLine(line);
    }
    if (!received->torn.empty() && !end_.outcome) {
      spdlog::debug("trial #{}: the trainer's last line is torn", job_.trial.value);
    }
    if (received->closed) Advance(ChannelClosed{});
  }

  void TakeLine(const std::string& line) {
    const absl::StatusOr<UpMessage> message = ReadTrainerLine(line);
    if (message.ok()) {
      std::visit([this](const auto& body) { Take(body); }, *message);
    } else {
      Advance(ProtocolBroken{absl::StrCat("the trainer sent '", line.substr(0, 120),
                                          "': ", message.status().message())});
    }
  }

  void Take(const Hello&) {
    Advance(ProtocolBroken{"the trainer sent a second hello: expected one per process"});
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
    end_.beat.stage = message.stage;
    end_.beat.allocated = message.allocated;
    end_.beat.reserved = message.reserved;
    end_.live_peak = std::max(end_.live_peak, message.peak);
    end_.memory = message;
    reports_.AddMemoryRecord(message);
    if (message.stage == kOutOfMemoryStage) reports_.AddOom();
    if (message.plan) {
      end_.plan = *message.plan;
      reports_.AddPlan(*message.plan);
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
    Advance(message);
  }

  void Take(const LogMessage& message) {
    const auto level = message.level == "error"     ? spdlog::level::err
                       : message.level == "warning" ? spdlog::level::warn
                                                    : spdlog::level::info;
    spdlog::log(level, "trial #{}: {}", job_.trial.value, message.text);
  }

  void Take(const AttributesMessage& message) { reports_.AddAttributes(message.attributes); }

  void Take(const OutcomeMessage& message) { Advance(message); }

  void Progress(int64_t step) {
    end_.beat.step = std::max(end_.beat.step, step);
    services_.keeper.Update(end_.beat);
  }

  void TellLog() {
    std::optional<std::string> news = log_.News(clock_.Monotonic());
    if (!news) return;
    end_.beat.log_tail = *std::move(news);
    services_.keeper.Update(end_.beat);
  }

  void TakeAnswer(const ReportAnswer& answer) {
    if (!answer.why.empty()) spdlog::info("trial #{}: {}", job_.trial.value, answer.why);
    Advance(OrderOf(answer));
  }

  // ---- The end ----

  AttemptEnd Conclude() {
    services_.stop.SetEndingTime(StopSignal::kEndingTime);
    SettleTrainer();
    if (const absl::Status copied = log_.CopyTo(job_.output_dir); !copied.ok()) {
      spdlog::warn("trial #{}: its part of the trainer's output is not kept: {}", job_.trial.value,
                   std::string(copied.message()));
    }
    if (end_.stop_cause == StopCause::kLeaseLost) return LostLease{};
    if (CannotStart(end_))
      return UnstartableProgram{.why = LastLine(end_.log_tail), .log_tail = log_.Tail()};
    std::optional<TrialOutcome> outcome = JudgeAttempt(end_);
    if (!outcome) {
      reports_.SendLast();
      return ReturnedTrial{.why = end_.stop_cause == StopCause::kPreempted ? "ordered by the server"
                                                                           : "the worker stops",
                           .log_tail = log_.Tail()};
    }
    if (auto* completed = std::get_if<Completed>(&*outcome);
        completed != nullptr && completed->model_path.empty()) {
      completed->model_path = ModelLeftIn(job_.output_dir);
    }
    end_.num_ooms = reports_.num_ooms();
    end_.num_replans = reports_.num_replans();
    FinishRequest finish = ResultOf(*std::move(outcome), end_);
    finish.log_tail = log_.Tail();
    reports_.MoveUnsentTo(finish);
    return AttemptResult{std::move(finish), std::move(best_path_)};
  }

  // Leaves the slot with a warm trainer or none; takes down what is needed of the process first.
  void SettleTrainer() {
    if (!end_.outcome) {
      end_.log_tail = log_.LastLines(kLogTailLines);
      end_.oom_kills = services_.count_oom_kills() - oom_kills_before_;
      services_.slot.Discard();
      return;
    }
    const Bytes tensors = job_.device == "cpu" ? MemoryUsed(end_).live_peak : Bytes{};
    end_.host_growth = services_.slot.AttemptEnded(end_.outcome->clean, tensors).value_or(Bytes{});
    if (end_.host_growth == Bytes{}) return;
    spdlog::warn(
        "trial #{}: the trainer's host memory grows from attempt to attempt, by {} in {}: "
        "the next one gets a new process",
        job_.trial.value, FormatBytes(end_.host_growth), ResidentWatch::kAttempts);
    reports_.AddMemoryRecord(GrowthRecord(end_));
  }

  const AttemptServices& services_;
  const AttemptOptions& options_;
  const TrainerJob& job_;
  TrainerProcess& process_;
  const SystemClock clock_;
  AttemptLog log_;
  const int64_t oom_kills_before_;
  RunningState state_;
  TrainerEnd& end_ = state_.end;
  std::string best_path_;
  ReportQueue reports_;
};

}  // namespace

AttemptEnd EndBeforeStart(const Assignment& assignment, const absl::Status& why) {
  const Failed failed{.failure_class = FailureClass::kBadConfiguration,
                      .message = std::string(why.message())};
  return AttemptResult{
      {.lease = assignment.lease, .outcome = failed, .final_plan = assignment.task.plan}};
}

AttemptEnd RunAttempt(const AttemptServices& services, const AttemptOptions& options,
                      const LeaseRef& lease, const TrainerJob& job) {
  return RunningAttempt(services, options, lease, job).Run();
}

}  // namespace hpo::agent
