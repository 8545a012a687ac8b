#include "worker/agent/loop/agent_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/space/placeholders.h"
#include "worker/agent/process/wait_for_machine.h"
#include "worker/command/command_template.h"

namespace hpo::agent {
namespace {

// In a row, before the worker gives its machine up.
constexpr int kMaxFailures = 3;

// For a trial, while there is something else to do.
constexpr absl::Duration kShortWait = absl::Seconds(2);

std::string DescribeRefusal(bool work_remains) {
  return absl::StrCat("stopped, as the server does not let this worker in any more",
                      work_remains ? "; work remains: run it again with a new join string" : "");
}

// Takes one event.
struct Transition {
  AgentState state;
  const AgentView& view;
  const AgentOptions& options;

  AgentActions operator()(const NothingCame&) {
    if (!state.database) return {RegisterAnew{}};
    return {DeliverResults{}};
  }

  AgentActions operator()(const AgentResult&) { return {}; }

  AgentActions operator()(const ActionFailed& failed) {
    const Reaction reaction =
        failed.rpc ? ReactionTo(*failed.rpc, failed.status, state.database.value_or(""))
                   : Reaction::kWait;
    if (reaction == Reaction::kEnd) {
      const bool name_taken =
          failed.rpc == Rpc::kRegisterWorker && absl::IsAlreadyExists(failed.status);
      return {
          AgentResult{name_taken ? ExitCode::kNameTaken : ExitCode::kConfiguration, failed.status}};
    }
    if (view.stop != StopLevel::kRun) {
      return state.database ? AgentActions{} : AgentActions{StoppedAtStart(view.stop)};
    }
    if (!state.database && view.running >= options.connect_timeout) {
      return {AgentResult{
          ExitCode::kTryAgain,
          absl::UnavailableError(absl::StrCat("not registered with ", options.server, " within ",
                                              absl::FormatDuration(options.connect_timeout), ": ",
                                              failed.status.message()))}};
    }
    const bool unknown = failed.rpc == Rpc::kAcquireTrial && reaction == Reaction::kRegisterAgain;
    if (failed.rpc == Rpc::kAcquireTrial) state.away = !unknown;
    return unknown ? AgentActions{RenewSession{}} : AgentActions{TakePause{.away = failed.status}};
  }

  AgentActions operator()(const AgentRegistered& registered) {
    if (state.database) return {};
    state.database = registered.database;
    if (options.stay || registered.data.ok()) return {};
    return {AgentResult{ExitCode::kBlocked, registered.data}};
  }

  AgentActions operator()(const ResultsDelivered& delivered) {
    if (view.stop == StopLevel::kNow) return {AgentResult{ExitCode::kKilled}};
    if (view.stop == StopLevel::kDrain) {
      const bool remains = state.work_remains || view.owes;
      if (view.refused) return End(ExitCode::kConfiguration, DescribeRefusal(remains));
      const char* const then = remains ? "; work remains: run this worker again" : "";
      return {WriteLog{spdlog::level::info, absl::StrCat("stopped on request", then)},
              AgentResult{remains ? ExitCode::kTryAgain : ExitCode::kDone}};
    }
    if (options.max_trials && state.num_finished >= *options.max_trials) {
      return {AgentResult{view.owes ? ExitCode::kTryAgain : ExitCode::kDone}};
    }
    if (!delivered.status.ok()) return {TakePause{}};
    return {LookAtMachine{}};
  }

  // The first request after a registration or a trial does not wait, so that the server's reason
  // for waiting is logged at once. Undelivered results and unreadable data shorten later waits.
  AgentActions operator()(const MachineSeen& machine) {
    if (options.max_idle && view.idle >= *options.max_idle) {
      const bool is_well = machine.may_take && !state.away && !view.owes;
      return End(is_well ? ExitCode::kDone : ExitCode::kTryAgain,
                 absl::StrCat("no trial for ", absl::FormatDuration(*options.max_idle),
                              " (--max-idle)", is_well ? "" : "; work may remain"));
    }
    if (view.left < view.start) {
      return End(ExitCode::kTryAgain,
                 "the time limit is near: no trial could start and save any more");
    }
    if (!machine.may_take) return {TakePause{}};
    if (machine.measure_again) return Register();
    if (!std::exchange(state.asked, true)) return {AskForTrial{absl::ZeroDuration()}};
    const bool hurries = view.owes || view.reads_again;
    absl::Duration wait =
        hurries ? std::min(options.acquire_wait, kShortWait) : options.acquire_wait;
    if (options.max_idle) wait = std::min(wait, *options.max_idle - view.idle);
    return {AskForTrial{wait}};
  }

  AgentActions operator()(const TrialAnswer& got) {
    const AcquireResult& answer = got.answer;
    state.away = false;
    state.work_remains = !answer.all_studies_finished;
    if (answer.assignment) return Begin(*answer.assignment, got);
    if (answer.drained) {
      return End(view.owes ? ExitCode::kTryAgain : ExitCode::kDone,
                 absl::StrCat("drained: ", options.worker,
                              " gets no trials until hpo worker resume ", options.worker));
    }
    // A result that is owed is worth staying for, and so are the studies of the database that the
    // worker came for while another one answers in its place.
    if (answer.all_studies_finished && !options.stay && !view.owes &&
        got.registration.database == state.database) {
      return {StudiesEnded{answer.finished}};
    }
    if (answer.studies_version != got.registration.studies_version) return Register();
    AgentActions actions;
    const std::string why =
        answer.all_studies_finished ? "no study has trials left to run" : answer.waiting_for;
    if (std::exchange(state.waiting_for, why) != why && !why.empty()) {
      actions.push_back(WriteLog{spdlog::level::info, absl::StrCat("waiting: ", why)});
    }
    if (answer.draining || answer.all_studies_finished) actions.push_back(TakePause{});
    return actions;
  }

  AgentActions operator()(const TrainerNotReady& trainer) {
    const absl::Status& why = trainer.why;
    const std::string note(why.message());
    if (absl::IsCancelled(why)) return {GiveBack("told to stop")};
    // What the machine lacks at the moment costs the trial no retry.
    if (MayPass(why)) {
      return {GiveBack(note),
              WriteLog{spdlog::level::warn, absl::StrCat("waiting for this machine: ", note)},
              TakePause{PauseKind::kCrowded}};
    }
    AgentActions actions = {GiveBack(note, ReleaseReason::kUnhealthy),
                            WriteLog{spdlog::level::err, note}};
    if (++state.num_failures >= kMaxFailures) {
      actions.push_back(AgentResult{ExitCode::kUnhealthy, why});
    } else {
      actions.push_back(TakePause{});
    }
    return actions;
  }

  AgentActions operator()(const AttemptEnd& end) {
    state.num_failures = 0;
    return std::visit([this](const auto& what) { return (*this)(what); }, end);
  }

  // What others hold is not free a moment later: a trial that comes back at once would only use up
  // its retries.
  AgentActions operator()(const AttemptResult& result) {
    ++state.num_finished;
    const auto* const oom = std::get_if<OutOfMemory>(&result.finish.outcome);
    const bool crowded = oom != nullptr && oom->kind == OomKind::kDirtyDevice;
    AgentActions actions = {KeepResult{result, crowded}};
    if (crowded) {
      actions.insert(actions.end(), {DeliverResults{}, TakePause{PauseKind::kCrowded}});
    }
    return actions;
  }

  AgentActions operator()(const ReturnedTrial& returned) {
    return {DiscardTrial{}, WithLog(GiveBack(returned.why), returned.log_tail)};
  }

  AgentActions operator()(const UnstartableProgram& program) {
    AgentActions actions = CannotRun(program.why, program.log_tail);
    actions.insert(actions.begin(), DiscardTrial{});
    return actions;
  }

  AgentActions operator()(const LostLease&) {
    return {
        WriteLog{spdlog::level::warn, absl::StrCat("trial #", state.lease.trial.number.value,
                                                   ": its lease is lost; the result is dropped")},
        DiscardTrial{.lease_lost = true}};
  }

 private:
  static AgentActions End(ExitCode code, std::string why) {
    return {WriteLog{spdlog::level::info, std::move(why)}, AgentResult{code}};
  }

  AgentActions Register() {
    state.asked = false;
    return {RegisterAnew{}};
  }

  AgentActions Begin(const Assignment& assignment, const TrialAnswer& got) {
    state.lease = assignment.lease;
    state.asked = false;
    state.waiting_for.clear();
    if (view.stop != StopLevel::kRun) return {GiveBack("")};
    if (!got.command.ok()) return CannotRun(got.command.message());
    if (!got.saves && assignment.longest_time > view.left) return TooLittleTime(assignment);
    const bool admits = !assignment.task.admission ||
                        assignment.task.memory.policy == MemoryPolicy::kOff ||
                        assignment.required <= got.free;
    if (admits) return {RunTrial{}};
    TrialRelease release = GiveBack(absl::StrCat("needs ", FormatBytes(assignment.required), ", ",
                                                 FormatBytes(got.free), " are free now"),
                                    ReleaseReason::kRejected);
    release.needed = assignment.required;
    return {std::move(release), TakePause{PauseKind::kShort}};
  }

  TrialRelease GiveBack(std::string note, ReleaseReason reason = ReleaseReason::kPreempted) const {
    return {.lease = state.lease, .reason = reason, .note = std::move(note)};
  }

  static TrialRelease WithLog(TrialRelease release, const std::string& log_tail) {
    release.log_tail = log_tail;
    return release;
  }

  AgentActions TooLittleTime(const Assignment& assignment) const {
    const auto rounded = [](absl::Duration time) {
      return absl::FormatDuration(absl::Trunc(time, absl::Seconds(1)));
    };
    const std::string why =
        absl::StrCat("trials of study ", assignment.lease.trial.study, " take up to ",
                     rounded(assignment.longest_time), ", ", rounded(view.left),
                     " are left to this worker, and its program saves no checkpoints");
    return {GiveBack(why), WriteLog{spdlog::level::info, why}, AgentResult{ExitCode::kTryAgain}};
  }

  // No trial would run, so that none is used up.
  AgentActions CannotRun(absl::string_view why, const std::string& log_tail = "") const {
    return {WithLog(GiveBack("the worker's command cannot run"), log_tail),
            AgentResult{
                ExitCode::kConfiguration,
                absl::InvalidArgumentError(absl::StrCat(
                    "trial #", state.lease.trial.number.value, " of study ",
                    state.lease.trial.study, " is given back, as its command cannot run: ", why))}};
  }
};

}  // namespace

AgentStep Next(AgentState state, const AgentEvent& event, const AgentView& view,
               const AgentOptions& options) {
  Transition transition{std::move(state), view, options};
  AgentActions actions = std::visit(transition, event);
  return {std::move(transition.state), std::move(actions)};
}

bool SavesTrials(const AgentOptions& options, const Hello& hello) {
  if (options.checkpoints.root.empty()) return false;
  if (options.command.text.empty()) return hello.Has("stop");
  return command::CommandTemplate(options.command.text).Has("checkpoint_dir");
}

absl::Status CheckCommand(const TrialCommand& command, const Assignment& assignment,
                          const std::vector<StudyData>& studies) {
  std::vector<std::string> names;
  for (const auto& [name, value] : assignment.task.params) names.push_back(name);
  for (const StudyData& study : studies) {
    if (study.study != assignment.lease.trial.study) continue;
    for (const std::string& name : study.parameters) {
      if (!assignment.task.params.contains(name)) names.push_back(name);
    }
  }
  HPO_RETURN_IF_ERROR(Annotate(CheckPlaceholders(command.text, names), command.option));
  HPO_RETURN_IF_ERROR(
      Annotate(command::CommandTemplate(command.text).CheckForShell(), command.option));
  return Annotate(CheckPlaceholders(command.metrics_file, names), "--metrics-file");
}

}  // namespace hpo::agent
