#include "tests/chaos/simulation/simulation.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/studies/study_description.h"
#include "server/studies/trial_writer.h"

namespace hpo {
namespace {

constexpr server::LeasePolicy kLease{.ttl = absl::Seconds(60)};
constexpr size_t kNumWorkers = 5;
constexpr size_t kNumStudies = 3;
constexpr size_t kOldLeasesKept = 8;

StudySpec MakeStudy(size_t index, Rng& rng) {
  StudySpec spec;
  spec.name = absl::StrCat("study", index);
  spec.objectives = {Objective{.metric = "score", .direction = Direction::kMaximize}};
  spec.trainer.task = "custom";
  spec.budget.trials = 20 + static_cast<int64_t>(rng.Below(150));
  if (rng.Below(4) == 0) spec.budget.no_progress = 40;
  if (rng.Below(3) == 0) spec.budget.trial_wall_clock = absl::Minutes(10);
  spec.sampler.type = "random";
  spec.sampler.seed = rng.NextU64() >> 1;
  spec.space.parameters = {Parameter{.name = "train.batch_size",
                                     .domain = IntDomain{.low = 1, .high = 64},
                                     .when = {},
                                     .default_value = {}}};
  return spec;
}

WorkerFacts MakeFacts(size_t index) {
  WorkerFacts facts;
  facts.worker = absl::StrCat("worker", index);
  facts.trainer = "simulated";
  facts.plans = false;
  facts.device.kind = "cpu";
  facts.device.name = "simulated";
  facts.capacity = GiB(index < 2 ? 16 : 8);
  return facts;
}

}  // namespace

Simulation::Simulation(uint64_t seed) : rng_(seed, 0), ledger_(LedgerOptions{.lease = kLease}) {
  for (size_t i = 0; i < kNumStudies; ++i) studies_.push_back(MakeStudy(i, rng_));
  for (size_t i = 0; i < kNumWorkers; ++i) workers_.push_back(Worker{.facts = MakeFacts(i)});
}

absl::Duration Simulation::Now() const { return server_->clock().Monotonic(); }

absl::Status Simulation::Begin() {
  HPO_ASSIGN_OR_RETURN(server_, SimulatedServer::Start(kLease));
  for (const StudySpec& spec : studies_) {
    HPO_RETURN_IF_ERROR(server_->scheduler().commands().CreateStudy(spec, false, "").status());
  }
  return absl::OkStatus();
}

const std::vector<Simulation::Weighted>& Simulation::Events() {
  static const auto* const kEvents = new std::vector<Weighted>{
      {4, &Simulation::Register},      {16, &Simulation::Ask},
      {3, &Simulation::AskAgain},      {14, &Simulation::BeatAll},
      {3, &Simulation::BeatStale},     {12, &Simulation::Report},
      {14, &Simulation::Finish},       {3, &Simulation::FinishLate},
      {3, &Simulation::RepeatFinish},  {1, &Simulation::ReuseRequestId},
      {1, &Simulation::Release},       {1, &Simulation::FinishWithAForgedToken},
      {2, &Simulation::Enqueue},       {1, &Simulation::Preempt},
      {1, &Simulation::Extend},        {1, &Simulation::StopTrial},
      {1, &Simulation::CancelTrial},   {2, &Simulation::OrderStudy},
      {1, &Simulation::AddStudyAgain}, {14, &Simulation::PassSeconds},
      {2, &Simulation::PassMinutes},   {1, &Simulation::JumpWallClock},
      {8, &Simulation::Tick},          {1, &Simulation::Restart},
      {1, &Simulation::Crash},         {1, &Simulation::Audit}};
  return *kEvents;
}

absl::Status Simulation::Step() {
  uint64_t total = 0;
  for (const Weighted& weighted : Events()) total += static_cast<uint64_t>(weighted.weight);
  auto drawn = static_cast<int64_t>(rng_.Below(total));
  for (const Weighted& weighted : Events()) {
    drawn -= weighted.weight;
    if (drawn < 0) return (this->*weighted.event)();
  }
  return absl::OkStatus();
}

absl::Status Simulation::Allowed(const char* call, const absl::Status& status) {
  Trace(absl::StrCat(absl::FormatDuration(Now()), " ", call, " ",
                     absl::StatusCodeToString(status.code())));
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kInvalidArgument:
      return absl::OkStatus();
    default:
      return Annotate(absl::InternalError(status.ToString()), call);
  }
}

// ---- Workers ----

absl::Status Simulation::Register() { return RegisterAs(AnyWorker(), rng_.Below(2) == 0); }

absl::Status Simulation::RegisterAs(Worker& worker, bool new_process) {
  if (new_process || worker.num_instances == 0) {
    ++worker.num_instances;
    // Of the same state folder, or one that has to wait for the name.
    worker.predecessor = rng_.Below(2) == 0 ? worker.facts.instance_key : "";
    worker.facts.instance_key = absl::StrCat(worker.facts.worker, "-", worker.num_instances);
    worker.old.insert(worker.old.end(), worker.held.begin(), worker.held.end());
    worker.held.clear();
    worker.ask_id.clear();
    worker.tell_id.clear();
    worker.session.clear();
  }
  const auto registered =
      server_->scheduler().sessions().RegisterWorker(worker.facts, worker.predecessor);
  if (absl::IsUnavailable(registered.status())) return absl::OkStatus();  // asks again later
  HPO_RETURN_IF_ERROR(Allowed("register", registered.status()));
  if (!registered.ok()) return absl::OkStatus();
  worker.session = registered->session;
  ledger_.Registered(worker.facts);
  return absl::OkStatus();
}

absl::Status Simulation::Ask() {
  Worker& worker = AnyWorker();
  worker.ask_id = NextId();
  return AskWith(worker, worker.ask_id);
}

absl::Status Simulation::AskAgain() {
  Worker& worker = AnyWorker();
  return worker.ask_id.empty() ? absl::OkStatus() : AskWith(worker, worker.ask_id);
}

absl::Status Simulation::AskWith(Worker& worker, const std::string& request_id) {
  const auto asked = server_->scheduler().dispatcher().AcquireTrial(
      worker.session, request_id, absl::ZeroDuration(), worker.facts.capacity, nullptr);
  HPO_RETURN_IF_ERROR(Allowed("ask", asked.status()));
  if (!asked.ok() || !asked->assignment) return absl::OkStatus();
  const LeaseRef& lease = asked->assignment->lease;
  Trace(absl::StrCat("  ", worker.facts.instance_key, " gets ", lease.trial.study, " #",
                     lease.trial.number.value, " attempt ", lease.attempt.value));
  HPO_RETURN_IF_ERROR(ledger_.Assigned(lease, worker.facts, Now()));
  const bool known = std::find(worker.held.begin(), worker.held.end(), lease) != worker.held.end();
  // One answer in ten never arrives.
  if (!known && rng_.Below(10) != 0) worker.held.push_back(lease);
  return absl::OkStatus();
}

absl::Status Simulation::BeatAll() {
  const Worker& worker = AnyWorker();
  return BeatOf(worker, worker.held);
}

absl::Status Simulation::BeatStale() {
  const Worker& worker = AnyWorker();
  return BeatOf(worker, worker.old);
}

absl::Status Simulation::BeatOf(const Worker& worker, const std::vector<LeaseRef>& leases) {
  std::vector<LeaseBeat> beats;
  for (const LeaseRef& lease : leases) beats.push_back(LeaseBeat{.lease = lease});
  const auto beat =
      server_->scheduler().sessions().Heartbeat(worker.session, beats, worker.facts.capacity);
  HPO_RETURN_IF_ERROR(Allowed("beat", beat.status()));
  if (!beat.ok()) return absl::OkStatus();
  for (size_t i = 0; i < leases.size(); ++i) {
    HPO_RETURN_IF_ERROR(ledger_.Beat(leases[i], beat->directives[i], Now()));
  }
  return absl::OkStatus();
}

absl::Status Simulation::Report() {
  Worker& worker = AnyWorker();
  if (worker.held.empty()) return absl::OkStatus();
  const LeaseRef& lease = worker.held[rng_.Below(worker.held.size())];
  AttemptReport report{.lease = lease};
  report.measurements = {Measurement{.step = static_cast<int64_t>(rng_.Below(6)),
                                     .epoch = 1.0,
                                     .metrics = {{"score", rng_.Uniform()}}}};
  if (rng_.Below(8) == 0) report.num_ooms = 1;
  const auto reported = server_->scheduler().results().ReportMeasurements(report);
  HPO_RETURN_IF_ERROR(Allowed("report", reported.status()));
  // A report that is taken proves life as a beat does.
  return reported.ok() ? ledger_.Beat(lease, Directive::kContinue, Now()) : absl::OkStatus();
}

TrialOutcome Simulation::AnyOutcome() {
  const uint64_t drawn = rng_.Below(20);
  if (drawn < 12) return Completed{.metrics = {{"score", rng_.Uniform()}}, .model_path = ""};
  if (drawn < 14) {
    return StoppedByPruner{.pruner = "p", .step = 3, .metrics = {{"score", rng_.Uniform()}}};
  }
  if (drawn < 17) {
    return OutOfMemory{.kind = static_cast<OomKind>(rng_.Below(5)),
                       .requested = MiB(64),
                       .peak = GiB(7),
                       .limit = GiB(8),
                       .phase = "forward",
                       .message = "out of memory"};
  }
  const FailureClass failures[] = {FailureClass::kTrainerCrashed, FailureClass::kBadData,
                                   FailureClass::kDeviceLost};
  return Failed{.failure_class = failures[drawn - 17], .message = "failed"};
}

FinishRequest Simulation::RequestFor(const LeaseRef& lease, TrialOutcome outcome) {
  FinishRequest request{.lease = lease, .outcome = std::move(outcome)};
  request.measurements = {
      Measurement{.step = 6, .epoch = 2.0, .metrics = {{"score", rng_.Uniform()}}}};
  return request;
}

absl::Status Simulation::Finish() {
  Worker& worker = AnyWorker();
  if (worker.held.empty()) return absl::OkStatus();
  const size_t index = rng_.Below(worker.held.size());
  const LeaseRef lease = worker.held[index];
  worker.held.erase(worker.held.begin() + static_cast<std::ptrdiff_t>(index));
  worker.old.push_back(lease);
  if (worker.old.size() > kOldLeasesKept) worker.old.erase(worker.old.begin());
  return FinishWith(worker, lease);
}

absl::Status Simulation::FinishLate() {
  Worker& worker = AnyWorker();
  if (worker.old.empty()) return absl::OkStatus();
  return FinishWith(worker, worker.old[rng_.Below(worker.old.size())]);
}

absl::Status Simulation::FinishWith(Worker& worker, const LeaseRef& lease) {
  const FinishRequest request = RequestFor(lease, AnyOutcome());
  const std::string request_id = NextId();
  const auto finished = server_->scheduler().results().FinishTrial(request_id, request);
  HPO_RETURN_IF_ERROR(Allowed("finish", finished.status()));
  if (!finished.ok()) return absl::OkStatus();
  worker.tell_id = request_id;
  worker.told = request;
  worker.answer = *finished;
  return ledger_.Finished(request, *finished);
}

absl::Status Simulation::RepeatFinish() {
  const Worker& worker = AnyWorker();
  if (worker.tell_id.empty()) return absl::OkStatus();
  const auto finished = server_->scheduler().results().FinishTrial(worker.tell_id, worker.told);
  HPO_RETURN_IF_ERROR(Allowed("repeat finish", finished.status()));
  const bool same = finished.ok() && finished->state == worker.answer.state &&
                    finished->stored == worker.answer.stored;
  return same ? absl::OkStatus()
              : absl::InternalError("a repeated result is not answered as the first time");
}

absl::Status Simulation::ReuseRequestId() {
  const Worker& worker = AnyWorker();
  if (worker.tell_id.empty()) return absl::OkStatus();
  FinishRequest other = worker.told;
  other.outcome = Failed{.failure_class = FailureClass::kInternal, .message = "another body"};
  const auto finished = server_->scheduler().results().FinishTrial(worker.tell_id, other);
  HPO_RETURN_IF_ERROR(Allowed("reuse id", finished.status()));
  return finished.ok() ? absl::InternalError("a request id is taken for two results")
                       : absl::OkStatus();
}

absl::Status Simulation::FinishWithAForgedToken() {
  const Worker& worker = AnyWorker();
  if (worker.held.empty()) return absl::OkStatus();
  LeaseRef forged = worker.held.front();
  forged.token.back() = forged.token.back() == '0' ? '1' : '0';
  const auto finished = server_->scheduler().results().FinishTrial(
      NextId(), RequestFor(forged, Completed{.metrics = {{"score", 1}}}));
  HPO_RETURN_IF_ERROR(Allowed("forge", finished.status()));
  return finished.ok() ? absl::InternalError("a result with a forged token is taken")
                       : absl::OkStatus();
}

absl::Status Simulation::Release() {
  Worker& worker = AnyWorker();
  if (worker.held.empty()) return absl::OkStatus();
  const LeaseRef lease = worker.held.back();
  worker.held.pop_back();
  worker.old.push_back(lease);
  const auto reason = static_cast<ReleaseReason>(rng_.Below(3));
  const auto released = server_->scheduler().results().ReleaseTrial(
      NextId(), {.lease = lease, .reason = reason, .needed = GiB(4 + rng_.Below(8))});
  HPO_RETURN_IF_ERROR(Allowed("release", released.status()));
  return released.ok() ? ledger_.Released(lease, *released) : absl::OkStatus();
}

// ---- People ----

absl::Status Simulation::Enqueue() {
  EnqueueRequest request;
  request.params["train.batch_size"] = int64_t{1} + static_cast<int64_t>(rng_.Below(64));
  request.demonstration = rng_.Below(8) == 0;
  const std::string& name = AnyStudy().name;
  HPO_ASSIGN_OR_RETURN(const server::StudyRuntime* const study,
                       server_->scheduler().state().studies.Find(name));
  const bool beyond = !study->standing().budget_left && !request.demonstration;
  const auto queued = server_->scheduler().enqueuer().EnqueueTrial(name, request, NextId());
  if (queued.ok() && beyond) ++enqueued_beyond_budget_[name];
  return Allowed("enqueue", queued.status());
}

absl::Status Simulation::Preempt() {
  const TrialNumber number{static_cast<int64_t>(rng_.Below(40))};
  return Allowed("preempt", server_->scheduler().orders().PreemptTrial(AnyStudy().name, number));
}

absl::Status Simulation::StopTrial() {
  const TrialNumber number{static_cast<int64_t>(rng_.Below(100))};
  return Allowed("stop",
                 server_->scheduler().orders().StopTrial(AnyStudy().name, number, "enough"));
}

absl::Status Simulation::CancelTrial() {
  const TrialNumber number{static_cast<int64_t>(rng_.Below(100))};
  return Allowed("cancel",
                 server_->scheduler().orders().CancelTrial(AnyStudy().name, number, "not needed"));
}

absl::Status Simulation::OrderStudy() {
  // Mostly to run: a study that is paused or stopped meets nothing else.
  const StudyOrder orders[] = {StudyOrder::kRun, StudyOrder::kRun, StudyOrder::kRun,
                               StudyOrder::kPause, StudyOrder::kStop};
  const StudyOrder order = orders[rng_.Below(5)];
  const bool stop_running = order == StudyOrder::kStop && rng_.Below(2) == 0;
  return Allowed("order",
                 server_->scheduler().orders().OrderStudy(AnyStudy().name, order, stop_running));
}

absl::Status Simulation::Extend() {
  const StudyUpdate update{.add_trials = 1};
  return Allowed("extend",
                 server_->scheduler().commands().UpdateStudy(AnyStudy().name, update, NextId()));
}

absl::Status Simulation::AddStudyAgain() {
  return Allowed(
      "add again",
      server_->scheduler().commands().CreateStudy(AnyStudy(), rng_.Below(2) == 0, "").status());
}

// ---- Time and the server ----

absl::Status Simulation::PassSeconds() {
  server_->clock().Advance(absl::Seconds(1 + static_cast<int64_t>(rng_.Below(20))));
  return absl::OkStatus();
}

absl::Status Simulation::PassMinutes() {
  server_->clock().Advance(absl::Seconds(30 + static_cast<int64_t>(rng_.Below(150))));
  return absl::OkStatus();
}

absl::Status Simulation::JumpWallClock() {
  server_->clock().JumpWallClock(absl::Minutes(static_cast<int64_t>(rng_.Below(1200)) - 600));
  return absl::OkStatus();
}

absl::Status Simulation::Tick() { return Allowed("tick", server_->scheduler().sweeper().Tick()); }

absl::Status Simulation::Restart() {
  Trace("restart");
  HPO_RETURN_IF_ERROR(Audit());
  HPO_RETURN_IF_ERROR(Annotate(server_->Restart(), "restart"));
  ledger_.Restarted(Now());
  return Audit();
}

absl::Status Simulation::Crash() {
  Trace("crash");
  HPO_RETURN_IF_ERROR(Audit());
  HPO_RETURN_IF_ERROR(Annotate(server_->Crash(), "crash"));
  ledger_.Restarted(Now());
  return Audit();
}

absl::Status Simulation::Audit() {
  for (const std::string& name : server_->scheduler().state().studies.Names()) {
    HPO_RETURN_IF_ERROR(AuditStudy(name));
  }
  return absl::OkStatus();
}

absl::Status Simulation::AuditStudy(const std::string& name) {
  HPO_ASSIGN_OR_RETURN(const server::StudyRuntime* const study,
                       server_->scheduler().state().studies.Find(name));
  std::vector<server::TrialRecord> rows;
  const auto read = [&](const server::StudyRows& stored) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(rows, LoadRows(stored.trials));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(server::ReadRows(*server_->scheduler().state().store, *study, read));
  HPO_RETURN_IF_ERROR(ledger_.Audit(name, rows, Now()));
  const auto budgeted = std::count_if(rows.begin(), rows.end(), [](const server::TrialRecord& row) {
    return row.trial.budgeted && !row.trial.demonstration;
  });
  const int64_t allowed = *study->spec().budget.trials + enqueued_beyond_budget_[name];
  if (budgeted <= allowed) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(name, ": ", budgeted, " trials of a budget of ", allowed));
}

// ---- The end ----

absl::Status Simulation::FinishHonestly(Worker& worker) {
  HPO_RETURN_IF_ERROR(AskWith(worker, NextId()));
  if (!worker.held.empty()) {
    const LeaseRef lease = worker.held.back();
    worker.held.pop_back();
    const FinishRequest request =
        RequestFor(lease, Completed{.metrics = {{"score", rng_.Uniform()}}, .model_path = ""});
    const auto finished = server_->scheduler().results().FinishTrial(NextId(), request);
    HPO_RETURN_IF_ERROR(Allowed("finish", finished.status()));
    if (finished.ok()) HPO_RETURN_IF_ERROR(ledger_.Finished(request, *finished));
  }
  return absl::OkStatus();
}

absl::Status Simulation::RunToTheEnd() {
  for (Worker& worker : workers_) HPO_RETURN_IF_ERROR(RegisterAs(worker, true));
  for (const StudySpec& spec : studies_) {
    HPO_RETURN_IF_ERROR(
        server_->scheduler().orders().OrderStudy(spec.name, StudyOrder::kRun, false));
  }
  const auto finished = [this](const StudySpec& spec) {
    return (*server_->scheduler().state().studies.Find(spec.name))->standing().finished;
  };
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds; ++round) {
    if (std::all_of(studies_.begin(), studies_.end(), finished)) break;
    for (Worker& worker : workers_) {
      if (worker.session.empty()) HPO_RETURN_IF_ERROR(RegisterAs(worker, false));
      HPO_RETURN_IF_ERROR(BeatOf(worker, {}));
      HPO_RETURN_IF_ERROR(FinishHonestly(worker));
    }
    server_->clock().Advance(absl::Seconds(10));
    HPO_RETURN_IF_ERROR(Tick());
  }
  for (const StudySpec& spec : studies_) HPO_RETURN_IF_ERROR(ExpectOver(spec.name));
  HPO_RETURN_IF_ERROR(Audit());
  return Restart();
}

void KeepDatabasesInMemory() {
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", /*overwrite=*/1);
}

absl::Status Simulation::ExpectOver(const std::string& name) {
  HPO_ASSIGN_OR_RETURN(const server::StudyRuntime* const study,
                       server_->scheduler().state().studies.Find(name));
  if (study->standing().finished) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(const StudyStatus status,
                       server::DescribeStudy(server_->scheduler().state(), name));
  // Outcomes are drawn: some teach that no worker here has the memory for any trial.
  const bool nothing_fits =
      absl::StrContains(status.waiting_for, "no configuration found that fits");
  if (nothing_fits && study->open.queue().empty() && study->open.leases().empty())
    return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name, ": stuck: ", status.waiting_for));
}

EpisodeResult RunEpisode(uint64_t seed, int64_t num_events) {
  EpisodeResult result;
  Simulation simulation(seed);
  result.violation = simulation.Begin();
  while (result.violation.ok() && result.num_events < num_events) {
    result.violation = simulation.Step();
    ++result.num_events;
  }
  if (result.violation.ok()) result.violation = simulation.RunToTheEnd();
  result.num_told = simulation.num_told();
  result.trace = simulation.trace();
  return result;
}

}  // namespace hpo
