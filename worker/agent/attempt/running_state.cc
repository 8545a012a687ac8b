#include "worker/agent/attempt/running_state.h"

#include <algorithm>
#include <utility>

namespace hpo::agent {
namespace {

// Takes one event.
struct Transition {
  RunningState state;
  absl::Duration now;
  const AttemptOptions& options;
  AttemptAction action = AttemptAction::kNone;

  // The trainer is asked once, whatever graver cause comes up afterwards.
  void operator()(const StopOrder& order) {
    const StopCause before = state.end.stop_cause;
    if (order.cause == StopCause::kNone || order.cause < before) return;
    if (!order.pruner.empty()) state.end.pruner = order.pruner;
    state.end.stop_cause = order.cause;
    if (before == StopCause::kNone) action = AttemptAction::kAskToStop;
  }

  void operator()(StopLevel level) {
    if (level == StopLevel::kNow) state.kill_at = absl::ZeroDuration();
    if (level != StopLevel::kRun) (*this)(StopOrder{StopCause::kDrain});
  }

  void operator()(const AskedToStop& asked) {
    if (asked.told) {
      state.asked_at = now;
    } else {
      state.kill_at = absl::ZeroDuration();
    }
  }

  void operator()(const ProgressMessage& message) {
    if (message.stop_time <= absl::ZeroDuration()) return;
    state.stop_time = message.stop_time;
    state.said_at = now;
    action = AttemptAction::kTellEndingTime;
  }

  // Nothing that follows can be trusted.
  void operator()(const ProtocolBroken& broken) {
    if (state.end.protocol_error.empty()) state.end.protocol_error = broken.how;
    state.kill_at = absl::ZeroDuration();
  }

  void operator()(const ChannelClosed&) {
    state.closed = true;
    const absl::Duration at = now + options.exit_grace;
    state.kill_at = std::min(at, state.kill_at.value_or(at));
  }

  void operator()(const OutcomeMessage& outcome) { state.end.outcome = outcome; }

  void operator()(const ProcessExit& exit) { state.end.exit = exit; }

  void operator()(const TimePassed&) {
    const std::optional<absl::Duration> kill_at = KillAt(state, options);
    if (kill_at && now >= *kill_at && !state.Over()) action = AttemptAction::kKill;
  }

  void operator()(const TrainerKilled& killed) {
    TrainerEnd& end = state.end;
    end.killed_by_agent = true;
    if (!killed.exit) {
      end.undying = killed.pid;
      return;
    }
    end.exit = *killed.exit;
    if (state.closed && end.stop_cause == StopCause::kNone && end.protocol_error.empty()) {
      end.protocol_error =
          "the trainer closed file descriptor 3 and ran on: expected an outcome line first";
    }
  }
};

}  // namespace

bool RunningState::Over() const {
  return end.outcome || end.undying || end.exit.code || end.exit.signal;
}

StopOrder OrderOf(Directive directive) {
  switch (directive) {
    case Directive::kContinue:
      break;
    case Directive::kStopPruned:
      return {StopCause::kPruned};
    case Directive::kLeaseLost:
      return {StopCause::kLeaseLost};
    case Directive::kCancelled:
      return {StopCause::kCancelled};
    case Directive::kPreempted:
      return {StopCause::kPreempted};
    case Directive::kTimeLimit:
      return {StopCause::kTimeLimit, kTimeLimitPruner};
  }
  return {};
}

StopOrder OrderOf(const ReportAnswer& answer) {
  const StopOrder directed = OrderOf(answer.directive);
  StopOrder judged;
  if (answer.verdict == ReportAnswer::Verdict::kLeaseLost) judged.cause = StopCause::kLeaseLost;
  if (answer.verdict == ReportAnswer::Verdict::kStop) {
    const bool late = answer.pruner == kTimeLimitPruner;
    judged = {late ? StopCause::kTimeLimit : StopCause::kPruned, answer.pruner};
  }
  return judged.cause < directed.cause ? directed : judged;
}

absl::Duration StopGrace(const RunningState& state, const AttemptOptions& options) {
  return std::max(options.stop_grace, std::min(state.stop_time, options.longest_stop_grace));
}

std::optional<absl::Duration> KillAt(const RunningState& state, const AttemptOptions& options) {
  if (!state.asked_at) return state.kill_at;
  const absl::Duration longest = std::max(options.stop_grace, options.longest_stop_grace);
  const absl::Duration at =
      std::min(std::max(*state.asked_at, state.said_at) + StopGrace(state, options),
               *state.asked_at + longest);
  return std::min(at, state.kill_at.value_or(at));
}

AttemptStep Next(RunningState state, const AttemptEvent& event, absl::Duration now,
                 const AttemptOptions& options) {
  Transition transition{std::move(state), now, options};
  std::visit(transition, event);
  return {std::move(transition.state), transition.action};
}

}  // namespace hpo::agent
