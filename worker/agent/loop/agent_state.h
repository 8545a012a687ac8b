// What a worker does next, from its start to its end: (state, event) -> (state, actions). Pure: the
// time, signals and what is owed are arguments. An end is named by its exit status.
//
//   event                           actions
//   nothing came                    register; once registered: deliver the results that are owed
//   a call or this machine failed   pause, then as above; but
//     wrong configuration           end 78 (79: the name is taken)
//     signal                        once registered: as above; else end 75, after two signals 130
//     connect time-out              end 75
//     session of an ask unknown     renew the session
//   registered                      as above; the first time, without any data: end 8
//   results delivered               look at the machine; but
//     signal                        end 75 where work remains, else 0; after two signals 130
//     --max-trials                  end 75 where a result is owed, else 0
//     server away                   pause
//   machine seen                    ask for a trial; but
//     --max-idle                    end 75 where a result is owed, the server is away or the
//                                   machine cannot run a trial, else 0
//     a trainer's start needs more time than is left
//                                   end 75
//     it cannot run one             pause
//     data may be readable by now   register
//   answer without a trial          say what is waited for; pause where the server did not wait
//     drained                       end 75 where a result is owed, else 0
//     every study finished          end, unless something is worth staying for
//     new studies                   register
//   trial                           run it; but
//     signal                        give the trial back
//     command cannot run            give the trial back; end 78
//     needs more than is free       give the trial back; pause
//     can neither end in the time left nor save
//                                   give the trial back; end 75
//   trainer not ready               give the trial back; pause, or end 77 after three in a row
//   result                          keep it; pause where others have filled the device
//   trial returned                  discard its files; give it back
//   program cannot start            discard its files; give it back; end 78
//   lease lost                      discard its files
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/protocol/trainer_protocol.h"
#include "common/protocol/worker_exchange.h"
#include "spdlog/common.h"
#include "worker/agent/attempt/attempt_runner.h"
#include "worker/agent/loop/agent_loop.h"
#include "worker/agent/process/stop_signal.h"
#include "worker/agent/session/coordinator_client.h"
#include "worker/agent/session/rpc_reaction.h"

namespace hpo::agent {

struct AgentState {
  std::optional<std::string> database;  // the first that the worker was registered with
  LeaseRef lease;                       // of the last trial that it was given
  bool asked = false;                   // for a trial, since it registered or was given one
  bool work_remains = true;
  bool away = false;        // the server did not answer the last time that a trial was asked for
  std::string waiting_for;  // as it was last said
  int num_failures = 0;     // of the trainer's start, in a row
  int64_t num_finished = 0;
};

// The worker's circumstances at the time of the event.
struct AgentView {
  StopLevel stop = StopLevel::kRun;
  absl::Duration running;  // since the start
  absl::Duration idle;     // without a trial, since it registered at the earliest
  // Until it has to begin to end for its time limit.
  absl::Duration left = absl::InfiniteDuration();
  absl::Duration start;      // what a trainer takes to be ready
  bool owes = false;         // results that the server has not
  bool reads_again = false;  // data that cannot be read now will be tried again
  bool refused = false;      // the server does not let this worker in any more
};

// ---- Events: what came of the last action; an AgentResult is the end ----

struct NothingCame {};
struct ActionFailed {
  absl::Status status;
  std::optional<Rpc> rpc;  // the call that failed; nullopt: this machine
};
// `data`: NOT_FOUND where the worker cannot read the data of any study that runs, and never will.
struct AgentRegistered {
  std::string database;
  absl::Status data;
};
struct ResultsDelivered {
  absl::Status status;  // ResultCourier::DeliverAll's
};
struct MachineSeen {
  bool may_take = false;       // trials
  bool measure_again = false;  // data, now
};
struct TrialAnswer {
  AcquireResult answer;
  Registration registration;  // that the call was made with
  Bytes free;                 // after the call, which may have waited
  absl::Status command;       // CheckCommand's, where there is a trial
  bool saves = true;          // the next attempt of a trial can go on where one was stopped
};
struct TrainerNotReady {
  absl::Status why;
};
using AgentEvent = std::variant<NothingCame, ActionFailed, AgentRegistered, ResultsDelivered,
                                MachineSeen, TrialAnswer, TrainerNotReady, AttemptEnd, AgentResult>;

// ---- Actions ----

struct RegisterAnew {};
struct RenewSession {};
struct DeliverResults {};
struct LookAtMachine {};
struct AskForTrial {
  absl::Duration wait;
};
struct RunTrial {};
struct KeepResult {
  AttemptResult result;
  bool crowded = false;  // it found a device that others have filled
};
struct DiscardTrial {
  bool lease_lost = false;
};
// kCrowded: ten times as long as kServer, for others to leave the machine.
enum class PauseKind { kServer, kCrowded, kShort };
struct TakePause {
  PauseKind kind = PauseKind::kServer;
  absl::Status away = {};  // where the server is: why
};
struct WriteLog {
  spdlog::level::level_enum level;
  std::string text;
};
struct StudiesEnded {
  std::vector<FinishedStudy> studies;
};
// A TrialRelease gives the trial back, an AgentResult ends the worker.
using AgentAction = std::variant<RegisterAnew, RenewSession, DeliverResults, LookAtMachine,
                                 AskForTrial, RunTrial, KeepResult, DiscardTrial, TrialRelease,
                                 TakePause, WriteLog, StudiesEnded, AgentResult>;
using AgentActions = std::vector<AgentAction>;

struct AgentStep {
  AgentState state;
  AgentActions actions;  // the next event is what comes of the last one
};

AgentStep Next(AgentState state, const AgentEvent& event, const AgentView& view,
               const AgentOptions& options);

// Whether the next attempt of a trial could go on where one was stopped, with the trainer that said
// `hello`. A program that does not speak the protocol knows only of a folder that its command
// names.
bool SavesTrials(const AgentOptions& options, const Hello& hello);

// Whether trials of the assignment's study, which is among `studies`, have all that the command
// names.
//   InvalidArgument  they have not, or a shell would run a value as a command
absl::Status CheckCommand(const TrialCommand& command, const Assignment& assignment,
                          const std::vector<StudyData>& studies);

}  // namespace hpo::agent
