#include "worker/agent/loop/agent_loop.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/protocol/process_identity.h"
#include "common/space/placeholders.h"
#include "spdlog/spdlog.h"
#include "worker/agent/attempt/kept_models.h"
#include "worker/agent/attempt/runs_folder.h"
#include "worker/agent/attempt/state_folder.h"
#include "worker/agent/attempt/trainer_job.h"
#include "worker/agent/process/wait_for_machine.h"
#include "worker/agent/session/lease_keeper.h"
#include "worker/agent/session/rpc_reaction.h"
#include "worker/agent/session/served_studies.h"
#include "worker/agent/session/worker_session.h"
#include "worker/command/command_template.h"

namespace hpo::agent {
namespace {

// In a row, before the worker gives its machine up.
constexpr int kMaxFailures = 3;

// How much longer to wait for others to leave a card or a disk than for a server to come back.
constexpr int kCrowdedPauses = 10;

// For a trial, while there is something else to do.
constexpr absl::Duration kShortWait = absl::Seconds(2);

WorkerFacts OwnFacts(const AgentOptions& options, const TrainerSlot& slot,
                     const ModelCatalog& models) {
  return {.worker = options.worker,
          .instance_key = RandomId(),
          .version = options.version,
          .torch_build = slot.hello().torch_build,
          .trainer = slot.launcher().Describe(),
          .plans = slot.hello().Has("plan"),
          .models = models.models,
          .process = OwnProcess()};
}

// What the server is told of what cannot be used: of folders with thousands of others not all, but
// neither kind in place of the other.
std::map<std::string, std::string> LeftOut(const std::map<std::string, std::string>& models,
                                           const std::map<std::string, std::string>& data) {
  constexpr size_t kMost = 200;  // of each kind
  constexpr Limit kLine = {500, "bytes", "", "", ""};
  std::map<std::string, std::string> told;
  for (const auto* const left_out : {&data, &models}) {
    size_t rest = kMost;
    for (const auto& [name, why] : *left_out) {
      if (rest-- == 0) break;
      told.emplace(name, Shortened(why, kLine));
    }
  }
  return told;
}

// Whether trials of the assignment's study, which is among `studies`, have all that the command
// names.
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

uint64_t SeedOf(const std::string& text) { return std::hash<std::string>()(text); }

class AgentLoop {
 public:
  AgentLoop(const AgentServices& services, const AgentOptions& options, TrainerSlot& slot)
      : services_(services),
        options_(options),
        slot_(slot),
        session_(OwnFacts(options, slot, services.models),
                 ReadFile(options.instance_file).value_or("")),
        keeper_(services.heartbeat_client, session_, services.capacity, wake_,
                SeedOf(session_.facts().instance_key)),
        checkpoints_(options.checkpoints),
        courier_(services.client, session_, keeper_, services.outbox, options.courier,
                 [this](const LeaseRef& lease, const absl::StatusOr<FinishResult>& answer) {
                   TakeAnswer(lease, answer);
                 }),
        backoff_(options.first_retry, options.longest_retry, SeedOf(session_.facts().instance_key)),
        crowded_(kCrowdedPauses * options.first_retry, kCrowdedPauses * options.longest_retry,
                 SeedOf(session_.facts().instance_key)),
        kept_models_(std::filesystem::absolute(options.runs_folder).string(),
                     options.num_kept_models) {}

  AgentResult Run() {
    DiscardInterrupted();
    if (std::optional<AgentResult> end = Connect()) return *std::move(end);
    for (;;) {
      if (services_.stop.raised()) return Drained();
      if (options_.max_trials && num_finished_ >= *options_.max_trials) return Done();
      if (std::optional<AgentResult> end = Turn()) return *std::move(end);
    }
  }

 private:
  // ---- Registration ----

  // Waits for the server and registers; a result when the worker must end instead.
  std::optional<AgentResult> Connect() {
    const absl::Duration deadline = clock_.Monotonic() + options_.connect_timeout;
    for (;;) {
      absl::Status registered;
      if (std::optional<AgentResult> end = RegisterAnew(registered)) return end;
      if (registered.ok()) break;
      if (services_.stop.raised()) return Drained();
      if (clock_.Monotonic() >= deadline) {
        return AgentResult{
            ExitCode::kTryAgain,
            absl::UnavailableError(absl::StrCat("not registered with ", options_.server, " within ",
                                                absl::FormatDuration(options_.connect_timeout),
                                                ": ", registered.message()))};
      }
      NoteAway(registered);
      services_.stop.WaitFor(backoff_.Next());
    }
    NoteBack();
    database_ = session_.current().database;
    spdlog::info("registered with {} as {}", options_.server, options_.worker);
    RememberInstance(options_.instance_file, session_.facts().instance_key);
    return NoDataAtAll();
  }

  // The end, where a failed call is a reason for it.
  std::optional<AgentResult> EndFor(Rpc rpc, const absl::Status& failure) const {
    if (failure.ok() || ReactionTo(rpc, failure, database_) != Reaction::kEnd) return std::nullopt;
    const bool name_taken = rpc == Rpc::kRegisterWorker && absl::IsAlreadyExists(failure);
    return AgentResult{name_taken ? ExitCode::kNameTaken : ExitCode::kConfiguration, failure};
  }

  // Studies run, but this worker cannot read the data of any of them, and never will.
  std::optional<AgentResult> NoDataAtAll() const {
    if (options_.stay || studies_.empty() || has_data_ || measure_again_at_) return std::nullopt;
    return AgentResult{ExitCode::kBlocked,
                       absl::NotFoundError(absl::StrCat(
                           "this worker has the data of no running study; give --data, or --train "
                           "and --validation",
                           data_failures_.empty() ? "" : ": ",
                           data_failures_.empty() ? "" : data_failures_.front().message()))};
  }

  // Asks which data the studies need, measures it and tells the server. A result when the worker
  // must end; else `status` says whether it is registered.
  std::optional<AgentResult> RegisterAnew(absl::Status& status) {
    absl::StatusOr<std::vector<StudyData>> studies = services_.client.ListStudyData();
    status = studies.status();
    if (!status.ok()) return EndFor(Rpc::kListStudies, status);
    studies_ = *std::move(studies);
    KeepThoseServed(serves_, studies_);
    // The server says what those need, and gives their trials to other workers.
    if (!options_.own_trainer) std::erase_if(studies_, NeedsProgram);
    DataCatalog::Scan scan = services_.data.Measure(studies_, services_.models.tokenizers);
    if (services_.stop.raised()) {
      status = absl::CancelledError("told to stop");
      return std::nullopt;
    }
    has_data_ = !scan.complete_studies.empty();
    NoteData(std::move(scan.failures));
    WorkerFacts facts = session_.facts();
    const absl::Status device = ReadDevice(facts);
    status = Annotate(device, "device");
    if (!MayTake("device", device)) return std::nullopt;
    facts.data_sets = std::move(scan.facts);
    facts.left_out = LeftOut(services_.models.left_out, scan.left_out);
    facts.reads_again = measure_again_at_.has_value();
    facts.serves = serves_;
    session_.SetFacts(std::move(facts));
    asked_ = false;
    status = session_.Register(services_.client);
    return EndFor(Rpc::kRegisterWorker, status);
  }

  // What could not be read for what this machine lacks at the moment is measured again.
  void NoteData(std::vector<absl::Status> failures) {
    if (failures != data_failures_) {
      for (const absl::Status& failure : failures) {
        spdlog::warn("{}", std::string(failure.message()));
      }
    }
    data_failures_ = std::move(failures);
    const bool may_pass = std::any_of(data_failures_.begin(), data_failures_.end(),
                                      [](const absl::Status& failure) { return MayPass(failure); });
    measure_again_at_.reset();
    if (may_pass) measure_again_at_ = clock_.Monotonic() + crowded_.Next();
  }

  static std::optional<std::vector<std::string>> ServedAtFirst(const AgentOptions& options) {
    if (options.studies.empty() && !options.own_trainer) return std::nullopt;
    return options.studies;
  }

  absl::Status ReadDevice(WorkerFacts& facts) {
    HPO_ASSIGN_OR_RETURN(facts.device, services_.capacity.Profile());
    if (services_.device_profiles != nullptr) {
      facts.device =
          services_.device_profiles->Complete(std::move(facts.device), facts.torch_build);
    }
    HPO_ASSIGN_OR_RETURN(facts.capacity, services_.capacity.Available());
    return absl::OkStatus();
  }

  // ---- One turn: deliver what is owed, ask, run ----

  std::optional<AgentResult> Turn() {
    if (const absl::Status delivered = courier_.DeliverAll(); !delivered.ok()) {
      return Pause(delivered);
    }
    // While attempts could not leave their files, the card does not answer, or its last user cannot
    // be ended, nothing is asked for.
    const absl::StatusOr<Bytes> capacity = services_.capacity.Available();
    const bool has_room = MayTake("disk", CheckRoom(options_.runs_folder));
    const bool may_start = MayTake("trainer", slot_.KilledHasEnded());
    if (!MayTake("device", capacity.status()) || !has_room || !may_start) {
      services_.stop.WaitFor(backoff_.Next());
      return std::nullopt;
    }
    if (measure_again_at_ && clock_.Monotonic() >= *measure_again_at_) return TakeNewStudies();

    const Registration registration = session_.current();
    const absl::StatusOr<AcquireResult> acquired =
        services_.client.AcquireTrial(registration.session, acquire_id_, AcquireWait(), *capacity,
                                      [this] { return services_.stop.raised(); });
    if (!acquired.ok()) return TakeAcquireFailure(acquired.status(), registration.session);

    NoteBack();
    acquire_id_ = RandomId();
    work_remains_ = !acquired->all_studies_finished;
    if (acquired->assignment) return RunAssignment(*acquired->assignment, *capacity);
    if (MayLeave(*acquired, registration)) return EndOfStudies(acquired->finished);
    if (acquired->studies_version != registration.studies_version) return TakeNewStudies();
    NoteWaiting(acquired->all_studies_finished ? "no study has trials left to run"
                                               : acquired->waiting_for);
    if (acquired->draining || acquired->all_studies_finished) {
      services_.stop.WaitFor(backoff_.Next());
    }
    return std::nullopt;
  }

  // The first ask, also after a trial, does not wait, so that what there is to wait for is told at
  // once. A result that is owed, and data that could not be read, are tried again soon.
  absl::Duration AcquireWait() {
    if (!std::exchange(asked_, true)) return absl::ZeroDuration();
    return courier_.owes() || measure_again_at_ ? std::min(options_.acquire_wait, kShortWait)
                                                : options_.acquire_wait;
  }

  // A result that is owed is worth staying for, and so are the studies of the database that the
  // worker came for while another one answers in its place.
  bool MayLeave(const AcquireResult& acquired, const Registration& registration) const {
    return acquired.all_studies_finished && !options_.stay && !courier_.owes() &&
           registration.database == database_;
  }

  // Whether trials may be taken as far as `topic` goes; log and server are told when that changes.
  bool MayTake(const std::string& topic, const absl::Status& state) {
    const std::string why = state.ok() ? "" : absl::StrCat("takes no trials: ", state.message());
    if (std::exchange(obstacles_[topic], why) != why) {
      spdlog::warn("{}: {}", topic, why.empty() ? "takes trials again" : why);
      keeper_.SetNotice(topic, why);
    }
    return why.empty();
  }

  std::optional<AgentResult> TakeNewStudies() {
    absl::Status registered;
    if (std::optional<AgentResult> end = RegisterAnew(registered)) return end;
    return registered.ok() ? std::nullopt : Pause(registered);
  }

  std::optional<AgentResult> TakeAcquireFailure(const absl::Status& status,
                                                const std::string& session) {
    if (services_.stop.raised()) return std::nullopt;
    // What the id was used for is another request's; a trial that it may have brought expires.
    if (absl::IsAlreadyExists(status)) acquire_id_ = RandomId();
    switch (ReactionTo(Rpc::kAcquireTrial, status, database_)) {
      case Reaction::kEnd:
        return EndFor(Rpc::kAcquireTrial, status);
      case Reaction::kRegisterAgain:
        break;
      default:
        return Pause(status);
    }
    const absl::Status renewed = session_.Renew(session, services_.client);
    if (renewed.ok()) return std::nullopt;
    if (std::optional<AgentResult> end = EndFor(Rpc::kRegisterWorker, renewed)) return end;
    return Pause(renewed);
  }

  std::optional<AgentResult> Pause(const absl::Status& status) {
    NoteAway(status);
    services_.stop.WaitFor(backoff_.Next());
    return std::nullopt;
  }

  // ---- One trial ----

  std::optional<AgentResult> RunAssignment(const Assignment& assignment, Bytes capacity) {
    asked_ = false;
    last_waiting_.clear();
    const LeaseRef& lease = assignment.lease;
    keeper_.Hold(lease);
    spdlog::info("trial #{} of {} (attempt {}): {}", lease.trial.number.value, lease.trial.study,
                 lease.attempt.value, FormatParams(assignment.task.params));
    if (services_.stop.raised()) return GiveBack({.lease = lease});
    const absl::Status fits = CheckCommand(options_.command, assignment, studies_);
    if (!fits.ok()) return CannotRun(lease, fits);
    // The call may have waited for a trial: what is free counts now.
    const Bytes now = services_.capacity.Available().value_or(capacity);
    if (DoesNotFit(assignment, now)) {
      GiveBack({.lease = lease,
                .reason = ReleaseReason::kRejected,
                .needed = assignment.required,
                .note = absl::StrCat("needs ", FormatBytes(assignment.required), ", ",
                                     FormatBytes(now), " are free now")});
      services_.stop.WaitFor(options_.first_retry);
      return std::nullopt;
    }
    if (const absl::Status run = PrepareRun(lease); !run.ok()) return TakeNotReady(lease, run);
    num_failures_ = 0;
    absl::StatusOr<JobPlaces> places = FindPlaces(assignment, services_.models, services_.data);
    if (!places.ok()) return TakeEnd(assignment, EndBeforeStart(assignment, places.status()));
    places->device = options_.device;
    places->output_dir = OutputFolder(lease);
    places->checkpoints = checkpoints_.SpecOf(lease);
    places->base = session_.facts().device.base;
    const TrainerJob job = MakeJob(assignment, *places);
    const AttemptServices attempt{.client = services_.client,
                                  .session = session_,
                                  .keeper = keeper_,
                                  .wake = wake_,
                                  .stop = services_.stop,
                                  .slot = slot_,
                                  .count_oom_kills = services_.count_oom_kills,
                                  .base = session_.facts().device.base};
    return TakeEnd(assignment, RunAttempt(attempt, options_.attempt, lease, job));
  }

  // No trial would run, so that none is used up.
  std::optional<AgentResult> CannotRun(const LeaseRef& lease, const absl::Status& why) {
    GiveBack({.lease = lease, .note = "the worker's command cannot run"});
    return AgentResult{ExitCode::kConfiguration,
                       absl::InvalidArgumentError(absl::StrCat(
                           "trial #", lease.trial.number.value, " of study ", lease.trial.study,
                           " is given back, as its command cannot run: ", why.message()))};
  }

  // What the machine lacks at the moment costs the trial no retry.
  std::optional<AgentResult> TakeNotReady(const LeaseRef& lease, const absl::Status& why) {
    if (absl::IsCancelled(why)) return GiveBack({.lease = lease, .note = "told to stop"});
    const auto reason = MayPass(why) ? ReleaseReason::kPreempted : ReleaseReason::kUnhealthy;
    GiveBack({.lease = lease, .reason = reason, .note = std::string(why.message())});
    if (!MayPass(why)) return CountFailure(why);
    spdlog::warn("waiting for this machine: {}", std::string(why.message()));
    services_.stop.WaitFor(crowded_.Next());
    return std::nullopt;
  }

  static bool DoesNotFit(const Assignment& assignment, Bytes capacity) {
    return assignment.task.admission && assignment.task.memory.policy != MemoryPolicy::kOff &&
           assignment.required > capacity;
  }

  absl::Status PrepareRun(const LeaseRef& lease) {
    std::error_code error;
    std::filesystem::create_directories(OutputFolder(lease), error);
    if (error) return FileError(error.value(), OutputFolder(lease));
    kept_models_.Begun(OutputFolder(lease));
    return slot_.Ensure();
  }

  std::string OutputFolder(const LeaseRef& lease) const {
    return std::filesystem::absolute(std::filesystem::path(options_.runs_folder) /
                                     AttemptFolder(lease))
        .string();
  }

  std::optional<AgentResult> TakeEnd(const Assignment& assignment, const AttemptEnd& end) {
    const LeaseRef& lease = assignment.lease;
    if (end.lease_lost) {
      spdlog::warn("trial #{}: its lease is lost; the result is dropped", lease.trial.number.value);
      keeper_.Drop(lease);
      DiscardRun(lease);
      return std::nullopt;
    }
    if (!end.cannot_start.empty()) {
      DiscardRun(lease);
      return CannotRun(lease, absl::FailedPreconditionError(end.cannot_start));
    }
    if (!end.give_back.empty()) {
      DiscardRun(lease);
      return GiveBack({.lease = lease, .note = end.give_back});
    }
    ++num_finished_;
    courier_.Accept(*end.finish);
    kept_models_.Ended();
    unsettled_.emplace(OutputFolder(lease), std::pair(assignment, end));
    if (const absl::Status delivered = courier_.DeliverAll(); !delivered.ok()) NoteAway(delivered);
    PauseWhereCrowded(end.finish->outcome);
    return std::nullopt;
  }

  // What others hold is not free a moment later: a trial that comes back at once would only use up
  // its retries.
  void PauseWhereCrowded(const TrialOutcome& outcome) {
    const auto* const oom = std::get_if<OutOfMemory>(&outcome);
    if (oom != nullptr && oom->kind == OomKind::kDirtyDevice) {
      services_.stop.WaitFor(crowded_.Next());
    } else {
      crowded_.Reset();
    }
  }

  // What the next attempt needs of it is in the trial's checkpoints.
  void DiscardRun(const LeaseRef& lease) {
    kept_models_.Discard(OutputFolder(lease));
    kept_models_.Ended();
  }

  void DiscardInterrupted() {
    std::vector<std::string> owed;
    for (const OutboxEntry& entry : services_.outbox.pending()) {
      owed.push_back(OutputFolder(entry.request.lease));
    }
    kept_models_.DiscardInterrupted(owed);
  }

  // A result of a former process stays as it is where the server takes it: what it is compared by
  // is not known any more.
  void TakeAnswer(const LeaseRef& lease, const absl::StatusOr<FinishResult>& answer) {
    // A late result's trial may run elsewhere by now, from the checkpoints that lie here.
    const bool over = answer.ok() && answer->state != TrialState::kQueued &&
                      answer->state != TrialState::kRunning;
    if (over) checkpoints_.Remove(lease);
    const auto unsettled = unsettled_.extract(OutputFolder(lease));
    const bool superseded = answer.ok() ? !answer->stored : absl::IsAborted(answer.status());
    if (superseded || (!unsettled.empty() && unsettled.mapped().first.demonstration)) {
      kept_models_.Discard(OutputFolder(lease));
    } else if (!unsettled.empty()) {
      const auto& [assignment, end] = unsettled.mapped();
      kept_models_.SettleEnd(lease.trial, OutputFolder(lease), end.finish->outcome, end.best_path,
                             {assignment.task.objective, assignment.constraints});
    }
  }

  std::optional<AgentResult> GiveBack(const TrialRelease& release) {
    if (const absl::Status given = courier_.GiveBack(release); !given.ok()) NoteAway(given);
    return std::nullopt;
  }

  // ---- Ends and notes ----

  AgentResult Drained() {
    if (session_.current().session.empty()) return StoppedAtStart(services_.stop);
    courier_.DeliverAll().IgnoreError();  // what remains is in the outbox
    if (services_.stop.level() == StopLevel::kNow) return {ExitCode::kKilled, absl::OkStatus()};
    const bool remains = work_remains_ || courier_.owes();
    spdlog::info("stopped on request{}", remains ? "; work remains: run this worker again" : "");
    return {remains ? ExitCode::kTryAgain : ExitCode::kDone, absl::OkStatus()};
  }

  AgentResult Done() const {
    return {courier_.owes() ? ExitCode::kTryAgain : ExitCode::kDone, absl::OkStatus()};
  }

  // The trainer could not be started: a pause, or the end after several in a row.
  std::optional<AgentResult> CountFailure(const absl::Status& status) {
    spdlog::error("{}", std::string(status.message()));
    if (++num_failures_ >= kMaxFailures) return AgentResult{ExitCode::kUnhealthy, status};
    services_.stop.WaitFor(backoff_.Next());
    return std::nullopt;
  }

  // Once for each code in a row. A card that does not answer is told by MayTake.
  void NoteAway(const absl::Status& status) {
    if (!obstacles_["device"].empty()) return;
    if (std::exchange(away_, status.code()) == status.code()) return;
    spdlog::warn("waiting for the server at {}: {}", options_.server, status.ToString());
  }

  void NoteBack() {
    backoff_.Reset();
    if (std::exchange(away_, absl::StatusCode::kOk) != absl::StatusCode::kOk) {
      spdlog::info("the server at {} answers", options_.server);
    }
  }

  void NoteWaiting(const std::string& why) {
    if (std::exchange(last_waiting_, why) == why || why.empty()) return;
    spdlog::info("waiting: {}", why);
  }

  const AgentServices& services_;
  const AgentOptions& options_;
  TrainerSlot& slot_;
  const SystemClock clock_;
  WakeUp wake_;
  WorkerSession session_;
  LeaseKeeper keeper_;
  const CheckpointFolders checkpoints_;
  ResultCourier courier_;
  Backoff backoff_;
  Backoff crowded_;  // after an attempt, or a look at the data, that found this machine full
  KeptModels kept_models_;
  // Results that the server does not have, by their attempts' folders.
  std::map<std::string, std::pair<Assignment, AttemptEnd>> unsettled_;

  std::optional<std::vector<std::string>> serves_ = ServedAtFirst(options_);
  std::vector<StudyData> studies_;  // that it serves
  bool has_data_ = false;
  std::vector<absl::Status> data_failures_;
  std::optional<absl::Duration> measure_again_at_;  // set: some of them may pass
  bool asked_ = false;                              // for a trial, since it registered
  std::string last_waiting_;
  std::map<std::string, std::string> obstacles_;  // by topic; empty: none
  // Kept until the server has answered, so that a lost reply does not lose an assignment.
  std::string acquire_id_ = RandomId();
  // That of the last call that failed; kOk: the server answers.
  absl::StatusCode away_ = absl::StatusCode::kOk;
  std::string database_;  // the first that the worker was registered with
  bool work_remains_ = true;
  int num_failures_ = 0;
  int64_t num_finished_ = 0;
};

}  // namespace

AgentResult EndOfStudies(const std::vector<FinishedStudy>& studies) {
  spdlog::info("every study is finished");
  for (const FinishedStudy& study : studies) {
    spdlog::log(study.failed ? spdlog::level::err : spdlog::level::info, "study {} is finished: {}",
                study.study, study.why);
  }
  const bool failed = studies.size() == 1 && studies.front().failed;
  return {failed ? ExitCode::kStudyFailed : ExitCode::kDone, absl::OkStatus()};
}

AgentResult RunAgent(const AgentServices& services, const AgentOptions& options,
                     const TrainerSlotOptions& slot_options) {
  TrainerSlot slot(services.launcher, services.capacity, services.stop, slot_options);
  // Before anything is promised to the server: what the trainer can do is part of the facts.
  const Backoff pauses(options.first_retry, options.longest_retry, SeedOf(options.worker));
  const absl::Status ready = slot.EnsureFirst(pauses);
  if (absl::IsCancelled(ready)) return StoppedAtStart(services.stop);
  if (!ready.ok()) {
    return {absl::IsInternal(ready) ? ExitCode::kUnhealthy : ExitCode::kConfiguration, ready};
  }
  const AgentResult result = AgentLoop(services, options, slot).Run();
  if (services.stop.level() == StopLevel::kNow) {
    slot.Discard();
  } else {
    slot.Shutdown();
  }
  return result;
}

}  // namespace hpo::agent
