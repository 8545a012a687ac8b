// How a running attempt comes to its end: (state, event) -> (state, action). Pure: monotonic times
// are arguments.
//
//   state     event                               becomes   action
//   running   an order to stop                    stopping  ask the trainer to stop
//   stopping  a graver order                      stopping  none: the order counts from now on
//   stopping  the trainer was asked               stopping  none: it has its grace to end
//   stopping  the trainer could not be asked      doomed    none
//   any       how long the trainer takes to stop  the same  tell how long the worker takes to end
//   any       a second signal                     doomed    as an order to stop
//   any       what breaks the protocol            doomed    none: the first one is kept
//   any       the channel is closed               doomed    none: it has the exit grace to end
//   any       time has passed: a grace is over    the same  kill the trainer
//   any       an outcome line, an exit, a kill    over      none
//
// A doomed trainer is killed at a time that nothing it says puts off. What comes after the end
// changes what the attempt came to (exit_outcome.h), but asks for no kill.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "common/protocol/trainer_protocol.h"
#include "common/protocol/worker_exchange.h"
#include "worker/agent/process/exit_outcome.h"
#include "worker/agent/process/stop_signal.h"
#include "worker/agent/session/report_queue.h"

namespace hpo::agent {

struct AttemptOptions {
  // From a stop request to SIGKILL: what the trainer says that it takes to end
  // (ProgressMessage::stop_time), but at least the one and at most the other.
  absl::Duration stop_grace = absl::Seconds(30);
  absl::Duration longest_stop_grace = absl::Hours(1);
  // From an outcome line of a trainer that is not reused, or a closed channel, to SIGKILL.
  absl::Duration exit_grace = absl::Seconds(10);
  // Between reports while the server is away.
  absl::Duration first_report_retry = absl::Milliseconds(500);
  absl::Duration longest_report_retry = absl::Seconds(10);
};

struct RunningState {
  TrainerEnd end;       // the evidence so far
  bool closed = false;  // the channel: no line will come
  std::optional<absl::Duration> kill_at;
  std::optional<absl::Duration> asked_at;  // to stop
  absl::Duration said_at;                  // when the trainer last said how long it takes to stop
  absl::Duration stop_time;                // what it said then

  // The trainer has said its last word.
  bool Over() const;
};

// From the server; a later cause of the enumeration is a graver one. kNone: no order.
struct StopOrder {
  StopCause cause = StopCause::kNone;
  std::string pruner = {};  // that asks for it
};
StopOrder OrderOf(Directive directive);
// The graver one of the verdict and of the directive that came with it.
StopOrder OrderOf(const ReportAnswer& answer);

// Whether the trainer was told to stop.
struct AskedToStop {
  bool told = false;
};
struct ProtocolBroken {
  std::string how;
};
struct ChannelClosed {};
struct TimePassed {};
// How the process ended after SIGKILL; nullopt: it did not.
struct TrainerKilled {
  std::optional<ProcessExit> exit;
  pid_t pid = 0;
};
using AttemptEvent =
    std::variant<StopOrder, StopLevel, AskedToStop, ProgressMessage, ProtocolBroken, ChannelClosed,
                 OutcomeMessage, ProcessExit, TimePassed, TrainerKilled>;

// kAskToStop is answered by AskedToStop, kKill by TrainerKilled.
enum class AttemptAction { kNone, kAskToStop, kTellEndingTime, kKill };

struct AttemptStep {
  RunningState state;
  AttemptAction action = AttemptAction::kNone;
};

AttemptStep Next(RunningState state, const AttemptEvent& event, absl::Duration now,
                 const AttemptOptions& options);

// How long a trainer may take that is asked to stop.
absl::Duration StopGrace(const RunningState& state, const AttemptOptions& options);

// When the trainer is killed unless it ends; nullopt: it may run. A trainer that was asked to stop
// and says how long it takes gets its whole time again with each line.
std::optional<absl::Duration> KillAt(const RunningState& state, const AttemptOptions& options);

}  // namespace hpo::agent
