// Tested by tests/cli/program/program_test.cc.
#include "cli/client/trial_client.h"

#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "cli/client/server_connection.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "proto/convert/outcome_proto.h"
#include "proto/convert/params_proto.h"
#include "proto/convert/study_proto.h"
#include "proto/convert/trial_proto.h"

namespace hpo::cli {
namespace {

using Studies = ServerConnection::Studies;

// A call whose request is a trial's study and number, and whose answer is the trial.
template <typename Request, typename Response>
absl::StatusOr<Trial> CallForTrial(ServerConnection& connection,
                                   grpc::Status (Studies::*method)(grpc::ClientContext*,
                                                                   const Request&, Response*),
                                   const std::string& study, TrialNumber number) {
  Request request;
  request.set_study(study);
  request.set_number(number.value);
  HPO_ASSIGN_OR_RETURN(const auto response, connection.Call(method, request));
  return FromProto(response.trial());
}

}  // namespace

absl::StatusOr<TrialListing> TrialClient::ListTrials(const TrialQuery& query) {
  v1::ListTrialsRequest request;
  request.set_study(query.study);
  for (const TrialState state : query.states) request.add_states(ToProto(state));
  request.set_page_size(query.page_size);
  request.set_page_token(query.page_token);
  request.set_newest_first(query.newest_first);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::ListTrials, request));
  TrialListing listing{.next_token = response.next_page_token(), .total = response.total()};
  for (const v1::Trial& trial : response.trials()) {
    HPO_ASSIGN_OR_RETURN(listing.trials.emplace_back(), FromProto(trial));
  }
  return listing;
}

absl::StatusOr<TrialView> TrialClient::GetTrial(const std::string& study, TrialNumber number) {
  v1::GetTrialRequest request;
  request.set_study(study);
  request.set_number(number.value);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::GetTrial, request));
  TrialView view;
  HPO_ASSIGN_OR_RETURN(view.trial, FromProto(response.trial()));
  view.sampler = response.trial().sampler();
  for (const v1::Measurement& measurement : response.trial().measurements()) {
    view.measurements.push_back(FromProto(measurement));
  }
  return view;
}

absl::StatusOr<std::vector<Trial>> TrialClient::BestTrials(const std::string& study, int count) {
  v1::ListBestTrialsRequest request;
  request.set_study(study);
  request.set_count(count);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::ListBestTrials, request));
  std::vector<Trial> trials;
  for (const v1::Trial& trial : response.trials()) {
    HPO_ASSIGN_OR_RETURN(trials.emplace_back(), FromProto(trial));
  }
  return trials;
}

absl::StatusOr<Trial> TrialClient::EnqueueTrial(const EnqueuedTrial& trial) {
  v1::EnqueueTrialRequest request;
  request.set_study(trial.study);
  *request.mutable_params() = ToProto(trial.params);
  request.set_demonstration(trial.demonstration);
  request.set_skip_admission(trial.skip_admission);
  request.set_forced_micro_batch(trial.forced_micro_batch);
  request.set_request_id(RandomId());
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::EnqueueTrial, request));
  return FromProto(response.trial());
}

absl::StatusOr<RetriedTrials> TrialClient::RetryTrials(const std::string& study,
                                                       const std::vector<TrialNumber>& numbers) {
  v1::RetryTrialsRequest request;
  request.set_study(study);
  for (const TrialNumber number : numbers) request.add_numbers(number.value);
  request.set_all_failed(numbers.empty());
  request.set_request_id(RandomId());
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::RetryTrials, request));
  RetriedTrials retried;
  for (const v1::Trial& trial : response.trials()) {
    HPO_ASSIGN_OR_RETURN(retried.trials.emplace_back(), FromProto(trial));
  }
  for (const v1::RetryTrialsResponse::Skipped& skipped : response.skipped()) {
    retried.skipped.emplace_back(TrialNumber{skipped.number()}, skipped.why());
  }
  return retried;
}

absl::StatusOr<ImportResult> TrialClient::ImportTrials(const TrialImport& import) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + ServerConnection::kStreamDeadline);
  v1::ImportTrialsResponse response;
  const auto writer = connection_.study().ImportTrials(&context, &response);
  v1::ImportTrialsRequest request;
  request.set_study(import.study);
  request.set_count_against_budget(import.count_against_budget);
  bool taken = true;
  size_t size = 0;
  for (size_t i = 0; i < import.trials.size() && taken; ++i) {
    v1::ImportedTrial& trial = *request.add_trials();
    trial = ToProto(import.trials[i]);
    size += trial.ByteSizeLong();
    if (size < ServerConnection::kPiece) continue;
    taken = writer->Write(request);
    request.clear_trials();
    size = 0;
  }
  if (taken) writer->Write(request);
  writer->WritesDone();
  HPO_RETURN_IF_ERROR(connection_.Describe(writer->Finish()));
  return ImportResult{
      .study = response.study(), .num_added = response.added(), .num_known = response.known()};
}

absl::StatusOr<Trial> TrialClient::PreemptTrial(const std::string& study, TrialNumber number) {
  return CallForTrial(connection_, &Studies::PreemptTrial, study, number);
}

absl::StatusOr<Trial> TrialClient::StopTrial(const std::string& study, TrialNumber number) {
  return CallForTrial(connection_, &Studies::StopTrial, study, number);
}

absl::StatusOr<Trial> TrialClient::CancelTrial(const std::string& study, TrialNumber number) {
  return CallForTrial(connection_, &Studies::CancelTrial, study, number);
}

absl::StatusOr<MemoryVerdict> TrialClient::EstimateMemory(const MemoryQuery& query) {
  v1::EstimateMemoryRequest request;
  request.set_study(query.study);
  *request.mutable_params() = ToProto(query.params);
  request.set_worker(query.worker);
  request.set_limit_bytes(query.limit.count);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::EstimateMemory, request));
  MemoryVerdict verdict{.estimate = FromProto(response.estimate()),
                        .fits = response.fits(),
                        .usable = Bytes{response.usable_bytes()},
                        .explanation = response.explanation()};
  HPO_ASSIGN_OR_RETURN(verdict.plan, FromProto(response.plan()));
  return verdict;
}

absl::Status AddFront(TrialClient& trials, StudyStatus& study) {
  const std::vector<Objective>& objectives = study.spec.objectives;
  if (objectives.size() < 2) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(const std::vector<Trial> best,
                       trials.BestTrials(study.spec.name, /*count=*/0));
  study.front.clear();
  for (const Trial& trial : best) {
    const auto* completed = trial.outcome ? std::get_if<Completed>(&*trial.outcome) : nullptr;
    if (completed == nullptr) continue;
    FrontTrial& on_front = study.front.emplace_back(FrontTrial{.number = trial.id.number});
    for (const Objective& objective : objectives) {
      const auto value = completed->metrics.find(objective.metric);
      const bool known = value != completed->metrics.end();
      on_front.values.push_back(known ? value->second : std::nan(""));
    }
  }
  return absl::OkStatus();
}

absl::Status ForEachTrial(TrialClient& trials, TrialQuery query,
                          absl::FunctionRef<absl::Status(Trial& trial)> take) {
  query.page_size = kPageLimit.most;
  do {
    HPO_ASSIGN_OR_RETURN(TrialListing listing, trials.ListTrials(query));
    for (Trial& trial : listing.trials) HPO_RETURN_IF_ERROR(take(trial));
    query.page_token = listing.next_token;
  } while (!query.page_token.empty());
  return absl::OkStatus();
}

}  // namespace hpo::cli
