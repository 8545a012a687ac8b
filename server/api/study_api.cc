#include "server/api/study_api.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/files/sha256.h"
#include "memory/plan/fit_decision.h"
#include "server/api/page_token.h"
#include "server/api/pareto.h"
#include "server/orders/edit_study.h"
#include "server/orders/import_trials.h"
#include "server/scheduler/trial_scheduler.h"
#include "server/studies/study_description.h"
#include "server/studies/trial_writer.h"

namespace hpo {
namespace {

constexpr int kDefaultPage = 100;
constexpr int64_t kLargestPage = kPageLimit.most;
constexpr absl::Duration kBookmarkEach = absl::Seconds(5);
constexpr absl::Duration kCancellationCheck = absl::Milliseconds(100);
constexpr int kEventBatch = 256;
constexpr size_t kArchivePiece = size_t{1} << 20;  // of an archive

absl::Status DrainingError() {
  return absl::UnavailableError("hpo-server is shutting down; try again soon");
}

// The worker to estimate for: the one named, else the largest that lives.
absl::StatusOr<WorkerFacts> ChooseWorker(const WorkerRegistry& registry, const std::string& name) {
  const std::vector<RegisteredWorker> workers = registry.List();
  const RegisteredWorker* chosen = nullptr;
  std::vector<std::string> names;
  for (const RegisteredWorker& worker : workers) {
    names.push_back(worker.facts.worker);
    if (!name.empty() && worker.facts.worker == name) return worker.facts;
    if (chosen == nullptr || worker.facts.capacity > chosen->facts.capacity) chosen = &worker;
  }
  if (chosen == nullptr) {
    return absl::FailedPreconditionError(
        "memory: expected a registered worker, got none; run: hpo-worker --gpu 0");
  }
  if (name.empty()) return chosen->facts;
  return absl::FailedPreconditionError(
      absl::StrCat("worker '", name, "': expected one of ", absl::StrJoin(names, ", ")));
}

// Where there is no estimate: what a placement goes by.
absl::StatusOr<MemoryAnswer> LearnedAnswer(const StudySpec& spec, const WorkerFacts& facts,
                                           const FitDecider& decider, const ParamMap& params,
                                           Bytes capacity) {
  const std::optional<LearnedFit> learned = decider.Learned(params, capacity);
  if (!learned.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "memory: expected a configuration with an estimate, got one that is not known on worker ",
        facts.worker, " (it lacks the model, or memory.policy is off)"));
  }
  const Bytes usable = UsableBytes(capacity, facts.device, spec.memory);
  MemoryAnswer answer{.usable = usable};
  if (const auto config = TrainingConfigOf(params, spec.trainer); config.ok()) {
    answer.planned.plan = LiteralPlan(*config);
  }
  answer.planned.fits = learned->fits;
  answer.planned.estimate.needed_limit = learned->needed;
  const std::string allowed = absl::StrCat(", allowed ", FormatBytes(usable));
  if (learned->needed == Bytes{}) {
    answer.explanation = absl::StrCat(
        learned->fits ? "would be tried: too few trials have run to learn what it needs"
                      : "does not fit: a trial no larger met an out-of-memory error",
        allowed);
  } else {
    answer.explanation = absl::StrCat(
        learned->fits ? "fits" : "does not fit", ": needs ", FormatBytes(learned->needed), " (",
        FormatBytes(learned->expected), " without its margin) by what other trials used", allowed);
  }
  return answer;
}

}  // namespace

absl::StatusOr<StudyApi::Created> StudyApi::CreateStudy(const StudySpec& spec, bool validate_only,
                                                        const std::string& request_id,
                                                        const std::function<bool()>& cancelled) {
  if (scheduler_.state().work.draining()) return DrainingError();
  HPO_ASSIGN_OR_RETURN(const bool created, scheduler_.commands().CreateStudy(
                                               spec, validate_only, request_id, cancelled));
  if (validate_only && created) {
    return Created{.status = StudyStatus{.spec = spec}, .created = false};
  }
  HPO_ASSIGN_OR_RETURN(StudyStatus status, DescribeStudy(scheduler_.state(), spec.name));
  return Created{.status = std::move(status), .created = created};
}

absl::StatusOr<StudyStatus> StudyApi::GetStudy(const std::string& name) const {
  return DescribeStudy(scheduler_.state(), name);
}

absl::StatusOr<std::vector<StudyStatus>> StudyApi::ListStudies() const {
  std::vector<StudyStatus> studies;
  for (const std::string& name : scheduler_.state().studies.Names()) {
    HPO_ASSIGN_OR_RETURN(studies.emplace_back(), DescribeStudy(scheduler_.state(), name));
  }
  return studies;
}

absl::StatusOr<StudyStatus> StudyApi::UpdateStudy(const std::string& name,
                                                  const StudyUpdate& update,
                                                  const std::string& request_id) {
  if (scheduler_.state().work.draining()) return DrainingError();
  HPO_RETURN_IF_ERROR(scheduler_.commands().UpdateStudy(name, update, request_id));
  return DescribeStudy(scheduler_.state(), name);
}

absl::StatusOr<StudyApi::Edited> StudyApi::EditStudy(const std::string& name,
                                                     const StudyEdit& edit) {
  if (scheduler_.state().work.draining()) return DrainingError();
  HPO_ASSIGN_OR_RETURN(EditResult result, hpo::EditStudy(scheduler_.state(), name, edit));
  HPO_ASSIGN_OR_RETURN(StudyStatus status, DescribeStudy(scheduler_.state(), name));
  return Edited{.result = std::move(result), .status = std::move(status)};
}

absl::StatusOr<StudyApi::ArchiveEnd> StudyApi::ArchiveStudy(
    const std::string& name, const std::function<bool(absl::string_view)>& sink) const {
  ArchiveEnd end;
  Sha256 digest;
  std::string piece;
  const auto send = [&]() -> absl::Status {
    digest.Update(piece);
    end.size += static_cast<int64_t>(piece.size());
    if (!sink(piece)) return absl::CancelledError("the caller of the archive has gone");
    piece.clear();
    return absl::OkStatus();
  };
  const auto take = [&](absl::string_view line) -> absl::Status {
    piece.append(line.data(), line.size());
    return piece.size() < kArchivePiece ? absl::OkStatus() : send();
  };
  HPO_ASSIGN_OR_RETURN(end.num_trials, scheduler_.archiver().ArchiveStudy(name, take));
  HPO_RETURN_IF_ERROR(send());
  end.sha256 = digest.HexDigest();
  return end;
}

absl::StatusOr<StudyStatus> StudyApi::RestoreStudy(const std::string& name,
                                                   const std::string& archive) {
  if (scheduler_.state().work.draining()) return DrainingError();
  HPO_ASSIGN_OR_RETURN(const std::string restored,
                       scheduler_.archiver().RestoreStudy(name, archive));
  return DescribeStudy(scheduler_.state(), restored);
}

absl::StatusOr<int64_t> StudyApi::DeleteStudy(const std::string& name,
                                              const std::string& archive_sha256) {
  if (scheduler_.state().work.draining()) return DrainingError();
  return scheduler_.archiver().DeleteStudy(name, archive_sha256);
}

absl::StatusOr<Trial> StudyApi::EnqueueTrial(const std::string& study,
                                             const EnqueueRequest& request,
                                             const std::string& request_id) {
  if (scheduler_.state().work.draining()) return DrainingError();
  HPO_ASSIGN_OR_RETURN(const TrialNumber number,
                       scheduler_.enqueuer().EnqueueTrial(study, request, request_id));
  HPO_ASSIGN_OR_RETURN(TrialView detail, GetTrial(study, number));
  return std::move(detail.trial);
}

absl::StatusOr<Attributes> StudyApi::ChangeAttributes(const std::string& study,
                                                      std::optional<TrialNumber> number,
                                                      const AttributeChange& change) {
  if (scheduler_.state().work.draining()) return DrainingError();
  return scheduler_.orders().ChangeAttributes(study, number, change);
}

absl::StatusOr<StudyApi::Retried> StudyApi::RetryTrials(const std::string& study,
                                                        const RetryRequest& request,
                                                        const std::string& request_id) {
  if (scheduler_.state().work.draining()) return DrainingError();
  HPO_ASSIGN_OR_RETURN(const RetryResult result,
                       scheduler_.enqueuer().RetryTrials(study, request, request_id));
  Retried retried{.trials = {}, .skipped = result.skipped};
  for (const TrialNumber number : result.queued) {
    HPO_ASSIGN_OR_RETURN(TrialView detail, GetTrial(study, number));
    retried.trials.push_back(std::move(detail.trial));
  }
  return retried;
}

absl::StatusOr<ImportResult> StudyApi::ImportTrials(const TrialImport& import) {
  if (scheduler_.state().work.draining()) return DrainingError();
  return hpo::ImportTrials(scheduler_.state(), import);
}

absl::StatusOr<Trial> StudyApi::PreemptTrial(const std::string& study, TrialNumber number) {
  HPO_RETURN_IF_ERROR(scheduler_.orders().PreemptTrial(study, number));
  HPO_ASSIGN_OR_RETURN(TrialView detail, GetTrial(study, number));
  return std::move(detail.trial);
}

absl::StatusOr<Trial> StudyApi::StopTrial(const std::string& study, TrialNumber number,
                                          const std::string& reason) {
  HPO_RETURN_IF_ERROR(
      scheduler_.orders().StopTrial(study, number, reason.empty() ? "stopped by hand" : reason));
  HPO_ASSIGN_OR_RETURN(TrialView detail, GetTrial(study, number));
  return std::move(detail.trial);
}

absl::StatusOr<Trial> StudyApi::CancelTrial(const std::string& study, TrialNumber number,
                                            const std::string& reason) {
  HPO_RETURN_IF_ERROR(scheduler_.orders().CancelTrial(
      study, number, reason.empty() ? "cancelled by hand" : reason));
  HPO_ASSIGN_OR_RETURN(TrialView detail, GetTrial(study, number));
  return std::move(detail.trial);
}

absl::StatusOr<StudyStatus> StudyApi::OrderStudy(const std::string& name, StudyOrder order,
                                                 bool stop_running_trials) {
  HPO_RETURN_IF_ERROR(scheduler_.orders().OrderStudy(name, order, stop_running_trials));
  return DescribeStudy(scheduler_.state(), name);
}

absl::StatusOr<TrialPage> StudyApi::ListTrials(const std::string& study, const TrialFilter& filter,
                                               int page_size, const std::string& page_token) const {
  if (page_size < 0 || page_size > kLargestPage) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_size: expected 0 to ", kLargestPage, ", got ", page_size));
  }
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const runtime, scheduler_.state().studies.Find(study));
  std::optional<TrialNumber> after;
  if (!page_token.empty()) {
    HPO_ASSIGN_OR_RETURN(after, ReadPageToken(runtime->name(), filter, page_token));
  }
  const int size = page_size == 0 ? kDefaultPage : page_size;
  TrialPage page;
  const auto read = [&](const StudyRows& rows) -> absl::Status {
    // One more than the page tells whether another follows.
    HPO_ASSIGN_OR_RETURN(page.trials, rows.trials.ListTrials(filter, after, size + 1));
    HPO_ASSIGN_OR_RETURN(page.total, rows.trials.CountTrials(filter));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(ReadRows(*scheduler_.state().store, *runtime, read));
  if (page.trials.size() > static_cast<size_t>(size)) {
    page.trials.pop_back();
    page.next_token = MakePageToken(runtime->name(), filter, page.trials.back().id.number);
  }
  return page;
}

absl::StatusOr<TrialView> StudyApi::GetTrial(const std::string& study, TrialNumber number) const {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const runtime, scheduler_.state().studies.Find(study));
  TrialView detail;
  const auto read = [&](const StudyRows& rows) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(TrialRecord record, rows.trials.LoadTrialWithAttempts(number));
    HPO_ASSIGN_OR_RETURN(detail.sampler, rows.trials.LoadSampler(number));
    HPO_ASSIGN_OR_RETURN(detail.measurements,
                         rows.attempts.LoadMeasurements(number, record.ToldAttempt()));
    detail.trial = std::move(record.trial);
    for (Attempt& attempt : detail.trial.attempts) {
      HPO_ASSIGN_OR_RETURN(attempt.memory_records,
                           rows.attempts.LoadMemoryRecords(number, attempt.number));
    }
    return absl::OkStatus();
  };
  const absl::Status loaded = ReadRows(*scheduler_.state().store, *runtime, read);
  if (absl::IsDataLoss(loaded)) {
    return TrialView{.trial = UnreadableTrial({runtime->name(), number}, loaded),
                     .measurements = {},
                     .sampler = {}};
  }
  HPO_RETURN_IF_ERROR(loaded);
  return detail;
}

absl::StatusOr<std::vector<Trial>> StudyApi::ListBestTrials(
    const std::string& study, int count, const std::function<bool()>& cancelled) const {
  if (count < 0) {
    return absl::InvalidArgumentError(absl::StrCat("count: expected at least 0, got ", count));
  }
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const runtime, scheduler_.state().studies.Find(study));
  const std::vector<Objective> objectives = runtime->spec().objectives;
  const bool several = objectives.size() > 1;
  std::vector<Trial> best;
  const auto read = [&](const StudyRows& rows) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(best, rows.trials.ListBest(objectives.front().direction,
                                                    several ? -1 : std::max(count, 1)));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(ReadRows(*scheduler_.state().store, *runtime, read));
  if (several) {
    HPO_ASSIGN_OR_RETURN(best, ParetoFront(std::move(best), objectives, cancelled));
  }
  const size_t all = several ? best.size() : 1;
  const size_t wanted = count == 0 ? all : static_cast<size_t>(count);
  if (best.size() > wanted) best.resize(wanted);
  return best;
}

absl::StatusOr<MemoryAnswer> StudyApi::EstimateMemory(const std::string& study,
                                                      const ParamMap& params,
                                                      const std::string& worker,
                                                      Bytes limit) const {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const runtime, scheduler_.state().studies.Find(study));
  HPO_ASSIGN_OR_RETURN(const WorkerFacts facts, ChooseWorker(scheduler_.state().workers, worker));
  const StudySpec spec = runtime->spec();
  const Bytes capacity = limit.count > 0 ? limit : QuantizeCapacity(facts.capacity);
  const MemoryKnowledge knowledge = scheduler_.state().Knowledge(*runtime, facts);
  const FitDecider decider(spec, facts, knowledge.evidence, knowledge.replays);
  HPO_ASSIGN_OR_RETURN(const std::optional<PlannedMemory> planned, decider.Plan(params, capacity));
  if (!planned) return LearnedAnswer(spec, facts, decider, params, capacity);
  MemoryAnswer answer{.planned = *planned,
                      .usable = UsableBytes(capacity, facts.device, spec.memory)};
  answer.explanation =
      planned->fits ? absl::StrCat("fits: needs ", FormatBytes(planned->estimate.needed_limit),
                                   " at micro-batch ", planned->plan.micro_batch, ", allowed ",
                                   FormatBytes(answer.usable))
                    : ExplainMisfit(*planned, answer.usable);
  return answer;
}

absl::Status StudyApi::WatchStudy(const std::string& study, int64_t after_sequence,
                                  const std::function<bool(const std::optional<TrialEvent>&)>& emit,
                                  const std::function<bool()>& cancelled) const {
  HPO_ASSIGN_OR_RETURN(StudyRuntime * runtime, scheduler_.state().studies.Find(study));
  const std::string name = runtime->name();
  int64_t sequence =
      after_sequence == 0 ? runtime->changes.last() : std::max<int64_t>(0, after_sequence);
  absl::Duration quiet;
  while (!scheduler_.state().work.draining() && !cancelled()) {
    // Anew each time: a study that is read again from its rows is another object.
    HPO_ASSIGN_OR_RETURN(runtime, scheduler_.state().studies.Find(name));
    if (!runtime->changes.AwaitAfter(sequence, kCancellationCheck)) {
      quiet += kCancellationCheck;
      if (quiet < kBookmarkEach) continue;
      quiet = absl::ZeroDuration();
      if (!emit(std::nullopt)) return absl::OkStatus();
      continue;
    }
    quiet = absl::ZeroDuration();
    std::vector<TrialEvent> events;
    const auto read = [&](const StudyRows& rows) -> absl::Status {
      HPO_ASSIGN_OR_RETURN(const auto stored, rows.events.After(sequence, kEventBatch));
      for (const EventLog::Event& event : stored) {
        TrialEvent& told = events.emplace_back(TrialEvent{event.sequence, event.kind, {}});
        if (event.trial == kNoTrial) continue;
        HPO_ASSIGN_OR_RETURN(told.trial, rows.trials.LoadTrialToShow(event.trial));
      }
      return absl::OkStatus();
    };
    HPO_RETURN_IF_ERROR(ReadRows(*scheduler_.state().store, *runtime, read));
    for (const TrialEvent& event : events) {
      sequence = event.sequence;
      if (!emit(event)) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

}  // namespace hpo
