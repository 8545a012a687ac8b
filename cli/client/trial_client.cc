// Tested by tests/cli/program/program_test.cc.
#include "cli/client/trial_client.h"

#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "cli/client/server_connection.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "proto/convert/study_exchange_proto.h"

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

absl::StatusOr<TrialPage> TrialClient::ListTrials(const std::string& study,
                                                  const TrialQuery& query) {
  auto request = ToMessage<v1::ListTrialsRequest>(query);
  request.set_study(study);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::ListTrials, request));
  return FromMessage<TrialPage>(response);
}

absl::StatusOr<std::vector<int64_t>> TrialClient::FindTrials(const std::string& study,
                                                             TableQuery query) {
  query.columns = {"number"};
  query.page_size = kTableLimit.most;
  std::vector<int64_t> numbers;
  do {
    v1::QueryTrialsRequest request = ToProto(query);
    request.set_study(study);
    HPO_ASSIGN_OR_RETURN(const auto page, connection_.Call(&Studies::QueryTrials, request));
    numbers.insert(numbers.end(), page.numbers().begin(), page.numbers().end());
    query.page_token = page.next_page_token();
  } while (!query.page_token.empty());
  return numbers;
}

absl::StatusOr<TrialView> TrialClient::GetTrial(const std::string& study, TrialNumber number) {
  v1::GetTrialRequest request;
  request.set_study(study);
  request.set_number(number.value);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::GetTrial, request));
  return ViewFromProto(response.trial());
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

absl::StatusOr<Trial> TrialClient::EnqueueTrial(const std::string& study,
                                                const EnqueueRequest& enqueue) {
  auto request = ToMessage<v1::EnqueueTrialRequest>(enqueue);
  request.set_study(study);
  request.set_request_id(RandomId());
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::EnqueueTrial, request));
  return FromProto(response.trial());
}

absl::StatusOr<RetryResult> TrialClient::RetryTrials(const std::string& study,
                                                     const RetryRequest& retry) {
  auto request = ToMessage<v1::RetryTrialsRequest>(retry);
  request.set_study(study);
  request.set_request_id(RandomId());
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::RetryTrials, request));
  return FromMessage<RetryResult>(response);
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
  return FromMessage<ImportResult>(response);
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

absl::StatusOr<memory::MemoryAnswer> TrialClient::EstimateMemory(const std::string& study,
                                                                 const MemoryQuery& query) {
  auto request = ToMessage<v1::EstimateMemoryRequest>(query);
  request.set_study(study);
  HPO_ASSIGN_OR_RETURN(const auto response, connection_.Call(&Studies::EstimateMemory, request));
  return FromMessage<memory::MemoryAnswer>(response);
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

absl::Status ForEachTrial(TrialClient& trials, const std::string& study, TrialQuery query,
                          absl::FunctionRef<absl::Status(Trial& trial)> take) {
  query.page_size = kPageLimit.most;
  do {
    HPO_ASSIGN_OR_RETURN(TrialPage page, trials.ListTrials(study, query));
    for (Trial& trial : page.trials) HPO_RETURN_IF_ERROR(take(trial));
    query.page_token = page.next_token;
  } while (!query.page_token.empty());
  return absl::OkStatus();
}

}  // namespace hpo::cli
