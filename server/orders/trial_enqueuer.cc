// Tested by tests/server/scheduler/orders_test.cc.
#include "server/orders/trial_enqueuer.h"

#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/protocol/study_exchange_fields.h"
#include "nlohmann/json.hpp"
#include "sampler/space/random_configuration.h"
#include "server/placement/capability.h"
#include "server/storage/trial_store.h"
#include "server/trials/typed_params.h"

namespace hpo::server {

void VisitFields(Is<QueuedAgain> auto& again, auto visit) {
  visit({"queued"}, again.queued);
  visit({"skipped"}, again.skipped);
}

namespace {

// Apart from the samplers' streams and from SeedOf's.
constexpr uint64_t kEnqueueStream = uint64_t{1} << 62;

constexpr absl::string_view kEnqueueTrial = "EnqueueTrial";
constexpr absl::string_view kRetryTrials = "RetryTrials";

// Of a request to `study`, as its id is stored with.
template <typename Request>
std::string BodyOf(const std::string& study, const Request& request) {
  nlohmann::json body = ToJson(request);
  body["study"] = study;
  return DumpJson(body);
}

//   FailedPrecondition  the study hands out nothing that is queued now; says what helps
absl::Status CheckTakesTrials(const StudyRuntime& study) {
  const std::string expected =
      absl::StrCat("study ", study.name(), ": expected one that has not ended, got one ");
  const StudyStanding standing = study.standing();
  if (standing.order == StudyOrder::kStop || standing.failure) {
    return absl::FailedPreconditionError(absl::StrCat(expected, "that has ",
                                                      standing.failure ? "failed" : "been stopped",
                                                      "; run: hpo study resume ", study.name()));
  }
  if (standing.target_reached.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(expected, "that has ended: ", standing.target_reached));
}

// `request.params` are complete.
absl::Status Queue(TrialTransaction& transaction, const StudyRuntime& study, TrialNumber number,
                   const EnqueueRequest& request) {
  TrialRecord record{.study_id = study.id()};
  record.trial.id = TrialId{study.name(), number};
  record.trial.params = request.params;
  record.trial.demonstration = request.demonstration;
  record.trial.admission = !request.skip_admission && !request.demonstration;
  record.trial.forced_micro_batch = request.forced_micro_batch;
  record.trial.created = transaction.now;
  HPO_RETURN_IF_ERROR(transaction.trials.InsertTrial(record));
  transaction.Changed(number, "queued");
  return absl::OkStatus();
}

bool EndedByMemory(const Trial& trial) {
  return trial.outcome && std::holds_alternative<OutOfMemory>(*trial.outcome);
}

bool IsPredicted(const Trial& trial) {
  return EndedByMemory(trial) && std::get<OutOfMemory>(*trial.outcome).predicted;
}

bool MayBeRetried(const Trial& trial) {
  return !trial.demonstration && (trial.state == TrialState::kFailed || EndedByMemory(trial));
}

// The trials that try one configuration: each retry names the one that they began with.
class Families {
 public:
  static absl::StatusOr<Families> Load(const AttributeStore& attributes) {
    Families families;
    HPO_ASSIGN_OR_RETURN(const auto found, attributes.Find(kRetryOfKey));
    for (const auto& [number, text] : found) {
      int64_t began = 0;
      if (absl::SimpleAtoi(text, &began)) families.Add(number, TrialNumber{began});
    }
    return families;
  }

  void Add(TrialNumber retry, TrialNumber began) {
    began_[retry] = began;
    retries_.emplace(began, retry);
  }

  TrialNumber BeganWith(TrialNumber number) const {
    const auto found = began_.find(number);
    return found == began_.end() ? number : found->second;
  }

  // Why no further trial is needed of those that began with `began`; empty: one is.
  absl::StatusOr<std::string> WhyNoMore(const TrialStore& trials, TrialNumber began) const {
    const auto [first, last] = retries_.equal_range(began);
    for (auto retry = first; retry != last; ++retry) {
      HPO_ASSIGN_OR_RETURN(const TrialRecord record, trials.LoadTrial(retry->second));
      const std::string name = absl::StrCat("trial #", retry->second.value);
      if (record.trial.state == TrialState::kCompleted) return name + " has completed it since";
      if (record.IsOpen()) {
        return absl::StrCat(name, record.trial.state == TrialState::kQueued ? " waits" : " runs",
                            " to try it again");
      }
    }
    return std::string();
  }

 private:
  std::map<TrialNumber, TrialNumber> began_;  // by retry
  std::multimap<TrialNumber, TrialNumber> retries_;
};

absl::StatusOr<std::vector<Trial>> Candidates(const TrialStore& trials, const std::string& study,
                                              const RetryRequest& request) {
  std::vector<Trial> candidates;
  for (const TrialNumber number : request.numbers) {
    HPO_ASSIGN_OR_RETURN(TrialRecord record, trials.LoadTrial(number));
    if (!MayBeRetried(record.trial)) {
      return absl::FailedPreconditionError(
          absl::StrCat("trial ", study, " #", number.value,
                       ": expected one that failed or ran out of memory, got ",
                       record.trial.demonstration ? "a demonstration" : Name(record.trial.state)));
    }
    candidates.push_back(std::move(record.trial));
  }
  if (!request.all_failed) return candidates;
  const TrialFilter ended{.states = {TrialState::kPruned, TrialState::kFailed}};
  HPO_ASSIGN_OR_RETURN(const std::vector<Trial> all, trials.ListTrials(ended, std::nullopt, -1));
  for (const Trial& trial : all) {
    // What was refused by its estimate is refused again, unless people know better and name it.
    if (MayBeRetried(trial) && !IsPredicted(trial)) candidates.push_back(trial);
  }
  return candidates;
}

}  // namespace

absl::StatusOr<ParamMap> TrialEnqueuer::CompleteEnqueued(const StudyRuntime& study,
                                                         const ParamMap& given,
                                                         TrialNumber number) const {
  const StudySpec spec = study.spec();
  const std::vector<WorkerFacts> workers = state_.workers.Alive();
  SearchSpace space = spec.space;
  space.model_facts = ModelFactsOf(spec, workers);
  HPO_ASSIGN_OR_RETURN(const ParamMap typed, TypedParams(space, given));
  // Who names no model gets one that can run now.
  const SearchSpace drawn =
      typed.contains(kModelNameParameter) ? space : SpaceForAny(spec, workers);
  ParamMap preset = typed;
  for (const Parameter& parameter : drawn.parameters) {
    if (parameter.default_value) preset.emplace(parameter.name, *parameter.default_value);
  }
  Rng rng(spec.sampler.seed, kEnqueueStream + static_cast<uint64_t>(number.value));
  HPO_ASSIGN_OR_RETURN(ParamMap params, sampler::DrawConfiguration(drawn, preset, rng));
  // A given value that the draw did not take is refused here, by name.
  for (const auto& [name, value] : typed) params[name] = value;
  HPO_RETURN_IF_ERROR(ValidateParams(space, params));
  return params;
}

absl::StatusOr<TrialNumber> TrialEnqueuer::EnqueueTrial(const std::string& name,
                                                        const EnqueueRequest& request,
                                                        const std::string& request_id) {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(name));
  if (request.forced_micro_batch < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("forced_micro_batch: expected at least 0, got ", request.forced_micro_batch));
  }
  HPO_RETURN_IF_ERROR(CheckTakesTrials(*study));
  const std::string body = BodyOf(study->name(), request);
  absl::MutexLock lock(&study->sampler.propose_mutex());
  TrialNumber number = study->next_number();
  HPO_ASSIGN_OR_RETURN(const ParamMap params, CompleteEnqueued(*study, request.params, number));
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(const auto answer,
                         transaction.answers.Find(request_id, kEnqueueTrial, body));
    if (answer) {
      number = TrialNumber{std::stoll(*answer)};
      return absl::OkStatus();
    }
    EnqueueRequest complete = request;
    complete.params = params;
    HPO_RETURN_IF_ERROR(Queue(transaction, *study, number, complete));
    return transaction.answers.Record(request_id, kEnqueueTrial, body, absl::StrCat(number.value),
                                      transaction.now);
  };
  HPO_RETURN_IF_ERROR(state_.writer.Write(*study, work));
  return number;
}

absl::Status TrialEnqueuer::QueueAgain(TrialTransaction& transaction, const StudyRuntime& study,
                                       const RetryRequest& request, QueuedAgain& result) const {
  HPO_ASSIGN_OR_RETURN(Families families, Families::Load(transaction.attributes));
  HPO_ASSIGN_OR_RETURN(const std::vector<Trial> candidates,
                       Candidates(transaction.trials, study.name(), request));
  TrialNumber next = study.next_number();
  for (const Trial& trial : candidates) {
    const TrialNumber began = families.BeganWith(trial.id.number);
    HPO_ASSIGN_OR_RETURN(const std::string no_more, families.WhyNoMore(transaction.trials, began));
    if (!no_more.empty()) {
      result.skipped.push_back({trial.id.number, no_more});
      continue;
    }
    EnqueueRequest again{.skip_admission = !trial.admission,
                         .forced_micro_batch = trial.forced_micro_batch};
    absl::StatusOr<ParamMap> params = CompleteEnqueued(study, trial.params, next);
    if (!params.ok() && request.all_failed) {
      result.skipped.push_back({trial.id.number, std::string(params.status().message())});
      continue;
    }
    if (!params.ok()) {
      return Annotate(params.status(), absl::StrCat("trial #", trial.id.number.value));
    }
    again.params = *std::move(params);
    HPO_RETURN_IF_ERROR(Queue(transaction, study, next, again));
    HPO_RETURN_IF_ERROR(
        transaction.attributes.Replace(next, {{kRetryOfKey, absl::StrCat(began.value)}}));
    families.Add(next, began);
    result.queued.push_back(next);
    ++next.value;
  }
  return absl::OkStatus();
}

absl::StatusOr<QueuedAgain> TrialEnqueuer::RetryTrials(const std::string& name,
                                                       const RetryRequest& request,
                                                       const std::string& request_id) {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(name));
  if (request.numbers.empty() != request.all_failed) {
    return absl::InvalidArgumentError(
        absl::StrCat("numbers: expected the trials to retry or all_failed, got ",
                     request.all_failed ? "both" : "neither"));
  }
  HPO_RETURN_IF_ERROR(CheckTakesTrials(*study));
  const std::string body = BodyOf(study->name(), request);
  absl::MutexLock lock(&study->sampler.propose_mutex());
  QueuedAgain result;
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    result = {};
    HPO_ASSIGN_OR_RETURN(const auto answer,
                         transaction.answers.Find(request_id, kRetryTrials, body));
    if (answer) {
      HPO_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(*answer));
      HPO_ASSIGN_OR_RETURN(result, FromJson<QueuedAgain>(json));
      return absl::OkStatus();
    }
    HPO_RETURN_IF_ERROR(QueueAgain(transaction, *study, request, result));
    return transaction.answers.Record(request_id, kRetryTrials, body, DumpJson(ToJson(result)),
                                      transaction.now);
  };
  HPO_RETURN_IF_ERROR(state_.writer.Write(*study, work));
  return result;
}

}  // namespace hpo::server
