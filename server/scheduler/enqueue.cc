// TrialScheduler: trials that people ask for.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "sampler/space/random_configuration.h"
#include "server/placement/capability.h"
#include "server/scheduler/trial_scheduler.h"
#include "server/studies/typed_params.h"

namespace hpo {
namespace {

// Apart from the samplers' streams and from SeedOf's.
constexpr uint64_t kEnqueueStream = uint64_t{1} << 62;

std::string BodyOf(const std::string& study, const EnqueueRequest& request) {
  return nlohmann::json{{"study", study},
                        {"params", ParamsToJson(request.params)},
                        {"demonstration", request.demonstration},
                        {"skip_admission", request.skip_admission},
                        {"forced_micro_batch", request.forced_micro_batch}}
      .dump();
}

}  // namespace

absl::StatusOr<ParamMap> TrialScheduler::CompleteEnqueued(const StudyRuntime& study,
                                                          const ParamMap& given,
                                                          TrialNumber number) const {
  const StudySpec spec = study.spec();
  SearchSpace space = spec.space;
  space.model_facts = ModelFactsOf(spec, workers_.Alive());
  HPO_ASSIGN_OR_RETURN(const ParamMap typed, TypedParams(space, given));
  ParamMap preset = typed;
  for (const Parameter& parameter : space.parameters) {
    if (parameter.default_value) preset.emplace(parameter.name, *parameter.default_value);
  }
  Rng rng(spec.sampler.seed, kEnqueueStream + static_cast<uint64_t>(number.value));
  HPO_ASSIGN_OR_RETURN(ParamMap params, DrawConfiguration(space, preset, rng));
  // A given value that the draw did not take is refused here, by name.
  for (const auto& [name, value] : typed) params[name] = value;
  HPO_RETURN_IF_ERROR(ValidateParams(space, params));
  return params;
}

absl::Status TrialScheduler::CheckTakesTrials(const StudyRuntime& study) {
  const std::string expected =
      absl::StrCat("study ", study.name(), ": expected one that goes on, got one ");
  if (study.order() == StudyOrder::kStop || study.failure()) {
    return absl::FailedPreconditionError(absl::StrCat(expected, "that has ",
                                                      study.failure() ? "failed" : "been stopped",
                                                      "; run: hpo study resume ", study.name()));
  }
  const std::string reached = study.target_reached();
  if (reached.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(expected, "that has ended: ", reached));
}

absl::Status TrialScheduler::Queue(TrialTransaction& transaction, const StudyRuntime& study,
                                   TrialNumber number, const EnqueueRequest& request) {
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

absl::StatusOr<TrialNumber> TrialScheduler::EnqueueTrial(const std::string& name,
                                                         const EnqueueRequest& request,
                                                         const std::string& request_id) {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, FindStudy(name));
  if (request.forced_micro_batch < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("forced_micro_batch: expected at least 0, got ", request.forced_micro_batch));
  }
  HPO_RETURN_IF_ERROR(CheckTakesTrials(*study));
  const std::string body = BodyOf(study->name(), request);
  absl::MutexLock lock(&study->propose_mutex());
  TrialNumber number = study->next_number();
  HPO_ASSIGN_OR_RETURN(const ParamMap params, CompleteEnqueued(*study, request.params, number));
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(const auto answer,
                         transaction.studies.FindAnswer(request_id, "EnqueueTrial", body));
    if (answer) {
      number = TrialNumber{std::stoll(*answer)};
      return absl::OkStatus();
    }
    EnqueueRequest complete = request;
    complete.params = params;
    HPO_RETURN_IF_ERROR(Queue(transaction, *study, number, complete));
    return transaction.studies.RecordAnswer(request_id, "EnqueueTrial", body,
                                            absl::StrCat(number.value), transaction.now);
  };
  HPO_RETURN_IF_ERROR(writer_.Write(*study, work));
  return number;
}

}  // namespace hpo
