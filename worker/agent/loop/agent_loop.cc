#include "worker/agent/loop/agent_loop.h"

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
#include "spdlog/spdlog.h"
#include "worker/agent/attempt/kept_models.h"
#include "worker/agent/attempt/runs_folder.h"
#include "worker/agent/attempt/state_folder.h"
#include "worker/agent/attempt/trainer_job.h"
#include "worker/agent/loop/agent_state.h"
#include "worker/agent/process/wait_for_machine.h"
#include "worker/agent/session/lease_keeper.h"
#include "worker/agent/session/served_studies.h"
#include "worker/agent/session/worker_session.h"

namespace hpo::agent {
namespace {

// How much longer to wait for others to leave a card or a disk than for a server to come back.
constexpr int kCrowdedPauses = 10;

WorkerFacts OwnFacts(const AgentOptions& options, const TrainerSlot& slot,
                     const AgentServices& services) {
  return {.worker = options.worker,
          .instance_key = RandomId(),
          .version = options.version,
          .torch_build = slot.hello().torch_build,
          .trainer = slot.launcher().Describe(),
          .plans = slot.hello().Has("plan"),
          .models = services.models.models,
          .process = OwnProcess(),
          .preflight =
              services.preflight == nullptr ? PreflightAbility::kNone : services.preflight->ability,
          .gpus = options.gpus};
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

absl::Status ReadDevice(const AgentServices& services, WorkerFacts& facts) {
  HPO_ASSIGN_OR_RETURN(facts.device, services.capacity.Profile());
  if (services.device_profiles != nullptr) {
    facts.device = services.device_profiles->Complete(std::move(facts.device), facts.torch_build);
  }
  HPO_ASSIGN_OR_RETURN(facts.capacity, services.capacity.Available());
  return absl::OkStatus();
}

uint64_t SeedOf(const std::string& text) { return std::hash<std::string>()(text); }

// Which studies a worker serves and what it has of their data: asked and measured before each
// registration.
class StudySurvey {
 public:
  // `pauses`: between two looks at data that cannot be read at the moment.
  StudySurvey(const AgentServices& services, const AgentOptions& options, Backoff pauses)
      : services_(services), own_trainer_(options.own_trainer), pauses_(pauses) {
    if (own_trainer_ || !options.studies.empty()) serves_ = options.studies;
  }

  // Puts what it finds into `facts`.
  //   others  ListStudyData's
  absl::Status Take(WorkerFacts& facts) {
    HPO_ASSIGN_OR_RETURN(studies_, services_.client.ListStudyData());
    KeepThoseServed(serves_, studies_);
    // The server says what those need, and gives their trials to other workers.
    if (!own_trainer_) std::erase_if(studies_, NeedsProgram);
    DataCatalog::Scan scan = services_.data.Measure(studies_, services_.models.tokenizers);
    if (services_.stop.raised()) return absl::OkStatus();
    has_data_ = !scan.complete_studies.empty();
    NoteFailures(std::move(scan.failures));
    facts.data_sets = std::move(scan.facts);
    facts.left_out = LeftOut(services_.models.left_out, scan.left_out);
    facts.reads_again = reads_again();
    facts.serves = serves_;
    return absl::OkStatus();
  }

  // Those that the worker serves.
  const std::vector<StudyData>& studies() const { return studies_; }

  // Whether data that could not be read may be readable later, and whether it is time to look.
  bool reads_again() const { return again_at_.has_value(); }
  bool IsDue() const { return again_at_ && clock_.Monotonic() >= *again_at_; }

  //   NotFound  studies run, but this worker cannot read the data of any of them, and never will
  absl::Status CheckData() const {
    if (studies_.empty() || has_data_ || again_at_) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat(
        "this worker has the data of no running study; give --data, or --train and --validation",
        failures_.empty() ? "" : ": ", failures_.empty() ? "" : failures_.front().message()));
  }

 private:
  // What could not be read for what this machine lacks at the moment is measured again.
  void NoteFailures(std::vector<absl::Status> failures) {
    const bool news = failures != failures_;
    again_at_.reset();
    for (const absl::Status& failure : failures) {
      if (news) spdlog::warn("{}", std::string(failure.message()));
      if (MayPass(failure) && !again_at_) again_at_ = clock_.Monotonic() + pauses_.Next();
    }
    if (!again_at_) pauses_.Reset();
    failures_ = std::move(failures);
  }

  const AgentServices& services_;
  const bool own_trainer_;
  const SystemClock clock_;
  Backoff pauses_;
  std::optional<std::vector<std::string>> serves_;
  std::vector<StudyData> studies_;
  bool has_data_ = false;  // of one of them
  std::vector<absl::Status> failures_;
  std::optional<absl::Duration> again_at_;  // set: some of them may pass
};

// Logs when the server goes away, once for each status code in a row, and when it answers again.
class ServerWatch {
 public:
  explicit ServerWatch(const std::string& address) : address_(address) {}

  void CallFailed(const absl::Status& status) {
    if (std::exchange(code_, status.code()) == status.code()) return;
    spdlog::warn("waiting for the server at {}: {}", address_, status.ToString());
  }
  void CallSucceeded() {
    if (std::exchange(code_, absl::StatusCode::kOk) == absl::StatusCode::kOk) return;
    spdlog::info("the server at {} answers", address_);
  }

 private:
  const std::string& address_;
  absl::StatusCode code_ = absl::StatusCode::kOk;  // of the last call
};

class AgentLoop {
 public:
  AgentLoop(const AgentServices& services, const AgentOptions& options, TrainerSlot& slot)
      : services_(services),
        options_(options),
        slot_(slot),
        session_(OwnFacts(options, slot, services), ReadFile(options.instance_file).value_or("")),
        keeper_(services.heartbeat_client, session_, services.capacity, wake_, seed_),
        checkpoints_(options.checkpoints),
        courier_(services.client, session_, keeper_, services.outbox, options.courier,
                 [this](const LeaseRef& lease, const absl::StatusOr<FinishResult>& answer) {
                   TakeAnswer(lease, answer);
                 }),
        backoff_(options.first_retry, options.longest_retry, seed_),
        crowded_(kCrowdedPauses * options.first_retry, kCrowdedPauses * options.longest_retry,
                 seed_),
        survey_(services, options, crowded_),
        kept_models_(std::filesystem::absolute(options.runs_folder).string(),
                     options.num_kept_models) {}

  AgentResult Run() {
    DiscardInterrupted();
    AgentEvent event = NothingCame{};
    while (!std::holds_alternative<AgentResult>(event)) {
      const absl::Duration now = clock_.Monotonic();
      const AgentView view{.stop = services_.stop.level(),
                           .running = now - began_,
                           .idle = now - busy_until_,
                           .left = services_.stop.DrainAt() - now,
                           .start = slot_.start_time(),
                           .owes = courier_.owes(),
                           .reads_again = survey_.reads_again(),
                           .refused = services_.is_refused && services_.is_refused()};
      AgentStep step = Next(std::move(state_), event, view, options_);
      state_ = std::move(step.state);
      event = NothingCame{};
      for (const AgentAction& action : step.actions) {
        event = std::visit([this](const auto& what) { return Do(what); }, action);
      }
    }
    return std::get<AgentResult>(event);
  }

 private:
  // ---- The server ----

  AgentEvent Do(const RegisterAnew&) {
    WorkerFacts facts = session_.facts();
    if (absl::Status asked = survey_.Take(facts); !asked.ok()) {
      return ActionFailed{asked, Rpc::kListStudies};
    }
    if (services_.stop.raised()) return ActionFailed{absl::CancelledError("told to stop"), {}};
    const absl::Status device = ReadDevice(services_, facts);
    if (!MayTake("device", device)) return ActionFailed{Annotate(device, "device"), {}};
    session_.SetFacts(std::move(facts));
    const absl::Status registered = session_.Register(services_.client);
    if (!registered.ok()) return ActionFailed{registered, Rpc::kRegisterWorker};
    NoteBack();
    if (!state_.database) {
      busy_until_ = clock_.Monotonic();
      spdlog::info("registered with {} as {}", options_.server, options_.worker);
      RememberInstance(options_.instance_file, session_.facts().instance_key);
      preflight_.emplace(services_.preflight, session_, services_.stop, seed_);
    }
    return AgentRegistered{session_.current().database, survey_.CheckData()};
  }

  AgentEvent Do(const RenewSession&) {
    const absl::Status renewed = session_.Renew(asked_with_.session, services_.client);
    if (!renewed.ok()) return ActionFailed{renewed, Rpc::kRegisterWorker};
    return NothingCame{};
  }

  AgentEvent Do(const DeliverResults&) {
    const absl::Status delivered = courier_.DeliverAll();
    NoteAway(delivered);
    return ResultsDelivered{delivered};
  }

  AgentEvent Do(const AskForTrial& ask) {
    asked_with_ = session_.current();
    const absl::StatusOr<AcquireResult> answer =
        services_.client.AcquireTrial(asked_with_.session, acquire_id_, ask.wait, capacity_,
                                      [this] { return services_.stop.raised(); });
    // What an id that is taken was used for is another request's; a trial that it may have brought
    // expires.
    if (answer.ok() || absl::IsAlreadyExists(answer.status())) acquire_id_ = RandomId();
    if (!answer.ok()) return ActionFailed{answer.status(), Rpc::kAcquireTrial};
    NoteBack();
    TrialAnswer got{.answer = *answer, .registration = asked_with_, .free = capacity_};
    if (answer->assignment) {
      assignment_ = *answer->assignment;
      keeper_.Hold(assignment_.lease);
      const LeaseRef& lease = assignment_.lease;
      spdlog::info("trial #{} of {} (attempt {}): {}", lease.trial.number.value, lease.trial.study,
                   lease.attempt.value, FormatParams(assignment_.task.params));
      got.free = services_.capacity.Available().value_or(capacity_);
      got.saves = SavesTrials(options_, slot_.hello());
      got.command = CheckCommand(options_.command, assignment_, survey_.studies());
    }
    return got;
  }

  // ---- This machine ----

  // While attempts could not leave their files, the card does not answer, or its last user cannot
  // be ended, nothing is asked for.
  AgentEvent Do(const LookAtMachine&) {
    const absl::StatusOr<Bytes> capacity = services_.capacity.Available();
    capacity_ = capacity.value_or(Bytes{});
    const bool has_room = MayTake("disk", CheckRoom(options_.runs_folder));
    const bool may_start = MayTake("trainer", slot_.KilledHasEnded());
    const bool answers = MayTake("device", capacity.status());
    return MachineSeen{.may_take = answers && has_room && may_start,
                       .measure_again = survey_.IsDue()};
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

  AgentEvent Do(const TakePause& pause) {
    NoteAway(pause.away);
    services_.stop.WaitFor(pause.kind == PauseKind::kServer    ? backoff_.Next()
                           : pause.kind == PauseKind::kCrowded ? crowded_.Next()
                                                               : options_.first_retry);
    return NothingCame{};
  }

  // ---- One trial ----

  AgentEvent Do(const RunTrial&) {
    const LeaseRef& lease = assignment_.lease;
    const std::string folder = kept_models_.FolderOf(lease);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return TrainerNotReady{FileError(error.value(), folder)};
    kept_models_.Begun(folder);
    if (absl::Status ready = slot_.Ensure(); !ready.ok()) return TrainerNotReady{std::move(ready)};
    absl::StatusOr<JobPlaces> places = FindPlaces(assignment_, services_.models, services_.data);
    if (!places.ok()) return EndBeforeStart(assignment_, places.status());
    places->device = options_.device;
    places->output_dir = folder;
    places->checkpoints = checkpoints_.SpecOf(lease);
    places->base = session_.facts().device.base;
    const AttemptServices attempt{.client = services_.client,
                                  .session = session_,
                                  .keeper = keeper_,
                                  .wake = wake_,
                                  .stop = services_.stop,
                                  .slot = slot_,
                                  .count_oom_kills = services_.count_oom_kills,
                                  .base = places->base};
    AttemptEnd end = RunAttempt(attempt, options_.attempt, lease, MakeJob(assignment_, *places));
    busy_until_ = clock_.Monotonic();
    return end;
  }

  AgentEvent Do(const KeepResult& kept) {
    courier_.Accept(kept.result.finish);
    kept_models_.Await(assignment_, kept.result);
    if (!kept.crowded) crowded_.Reset();
    return NothingCame{};
  }

  // What the next attempt needs of it is in the trial's checkpoints.
  AgentEvent Do(const DiscardTrial& discarded) {
    if (discarded.lease_lost) keeper_.Drop(assignment_.lease);
    kept_models_.Discard(kept_models_.FolderOf(assignment_.lease));
    kept_models_.Ended();
    return NothingCame{};
  }

  AgentEvent Do(const TrialRelease& release) {
    NoteAway(courier_.GiveBack(release));
    return NothingCame{};
  }

  void DiscardInterrupted() {
    std::vector<std::string> owed;
    for (const OutboxEntry& entry : services_.outbox.pending()) {
      owed.push_back(kept_models_.FolderOf(entry.request.lease));
    }
    kept_models_.DiscardInterrupted(owed);
  }

  void TakeAnswer(const LeaseRef& lease, const absl::StatusOr<FinishResult>& answer) {
    // A late result's trial may run elsewhere by now, from the checkpoints that lie here.
    const bool over = answer.ok() && answer->state != TrialState::kQueued &&
                      answer->state != TrialState::kRunning;
    if (over) checkpoints_.Remove(lease);
    kept_models_.TakeAnswer(lease, answer);
  }

  // ---- Ends and notes ----

  AgentEvent Do(const WriteLog& log) {
    spdlog::log(log.level, "{}", log.text);
    return NothingCame{};
  }

  AgentEvent Do(const StudiesEnded& ended) { return EndOfStudies(ended.studies); }

  AgentEvent Do(const AgentResult& result) { return result; }

  // MayTake logs a GPU that does not answer, which is not repeated here.
  void NoteAway(const absl::Status& status) {
    if (!status.ok() && obstacles_["device"].empty()) server_watch_.CallFailed(status);
  }

  void NoteBack() {
    backoff_.Reset();
    server_watch_.CallSucceeded();
  }

  const AgentServices& services_;
  const AgentOptions& options_;
  TrainerSlot& slot_;
  const SystemClock clock_;
  const absl::Duration began_ = clock_.Monotonic();
  absl::Duration busy_until_ = began_;
  WakeUp wake_;
  WorkerSession session_;
  const uint64_t seed_ =
      SeedOf(session_.facts().instance_key);  // spreads the calls of many workers
  LeaseKeeper keeper_;
  const CheckpointFolders checkpoints_;
  ResultCourier courier_;
  Backoff backoff_;
  Backoff crowded_;  // after an attempt that found this machine full
  StudySurvey survey_;
  KeptModels kept_models_;
  std::optional<PreflightThread> preflight_;  // once the worker has registered

  AgentState state_;
  std::map<std::string, std::string> obstacles_;  // by topic; empty: none
  Bytes capacity_;                                // when this machine was last looked at
  Registration asked_with_;                       // the last time that a trial was asked for
  Assignment assignment_;                         // the last one
  // Kept until the server has answered, so that a lost reply does not lose an assignment.
  std::string acquire_id_ = RandomId();
  ServerWatch server_watch_{options_.server};
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
  if (absl::IsCancelled(ready)) return StoppedAtStart(services.stop.level());
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
