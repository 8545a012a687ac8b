// Tested by tests/server/rpc/rpc_server_test.cc.
#include "server/rpc/study_query_service.h"

#include <algorithm>
#include <utility>

#include "common/base/limits.h"
#include "common/base/status.h"
#include "proto/convert/grpc_status.h"
#include "proto/convert/study_exchange_proto.h"
#include "server/api/page_token.h"
#include "server/rpc/rpc_macros.h"

namespace hpo::server {

// The overloads of this library would hide those of proto/convert.
using hpo::FromProto;
using hpo::ToProto;

namespace {

constexpr auto kPageBytes = static_cast<size_t>(kPageBytesLimit.most);

absl::Status CallerLeft() { return absl::CancelledError("the caller has left"); }

}  // namespace

grpc::Status StudyQueryService::GetStudy(grpc::ServerContext* context,
                                         const v1::GetStudyRequest* request,
                                         v1::GetStudyResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const StudyStatus study, queries_.GetStudy(request->name()));
  *response->mutable_study() = ToProto(study);
  return grpc::Status::OK;
}

grpc::Status StudyQueryService::ListStudies(grpc::ServerContext* context,
                                            const v1::ListStudiesRequest* request,
                                            v1::ListStudiesResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(StudyPage page, queries_.ListStudies(request->page_size(), request->page_token()));
  for (const StudyStatus& study : page.studies) *response->add_studies() = ToProto(study);
  response->set_next_page_token(page.next_token);
  return grpc::Status::OK;
}

absl::Status StudyQueryService::FillPage(const grpc::ServerContext* context,
                                         const v1::ListTrialsRequest& request,
                                         v1::ListTrialsResponse& response) {
  HPO_ASSIGN_OR_RETURN(const TrialQuery query, FromProto(request));
  HPO_ASSIGN_OR_RETURN(TrialPage page, queries_.ListTrials(request.study(), query));
  response.set_next_page_token(std::move(page.next_token));
  response.set_total(page.total);
  size_t used = 0;
  for (const Trial& trial : page.trials) {
    if (context->IsCancelled()) return CallerLeft();
    v1::Trial listed;
    if (request.view() == v1::TRIAL_VIEW_FULL) {
      HPO_ASSIGN_OR_RETURN(const TrialView detail,
                           queries_.GetTrial(trial.id.study, trial.id.number));
      listed = ToProto(detail);
    } else {
      listed = ToProto(Listed(trial));
    }
    used += listed.ByteSizeLong();
    if (used > kPageBytes && response.trials_size() > 0) {
      const TrialNumber last{response.trials(response.trials_size() - 1).number()};
      response.set_next_page_token(MakePageToken(trial.id.study, query.filter, last));
      break;
    }
    *response.add_trials() = std::move(listed);
  }
  return absl::OkStatus();
}

grpc::Status StudyQueryService::ListTrials(grpc::ServerContext* context,
                                           const v1::ListTrialsRequest* request,
                                           v1::ListTrialsResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  return ToGrpc(FillPage(context, *request, *response));
}

grpc::Status StudyQueryService::GetTrial(grpc::ServerContext* context,
                                         const v1::GetTrialRequest* request,
                                         v1::GetTrialResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const TrialView detail,
                 queries_.GetTrial(request->study(), TrialNumber{request->number()}));
  *response->mutable_trial() = ToProto(detail);
  return grpc::Status::OK;
}

grpc::Status StudyQueryService::QueryTrials(grpc::ServerContext* context,
                                            const v1::QueryTrialsRequest* request,
                                            v1::QueryTrialsResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const TablePage page, queries_.QueryTrials(request->study(), FromProto(*request)));
  *response = ToProto(page);
  return grpc::Status::OK;
}

grpc::Status StudyQueryService::GetHistory(grpc::ServerContext* context,
                                           const v1::GetHistoryRequest* request,
                                           v1::GetHistoryResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const HistorySample sample,
                 queries_.GetHistory(request->study(), request->points()));
  *response = ToProto(sample);
  return grpc::Status::OK;
}

grpc::Status StudyQueryService::ListBestTrials(grpc::ServerContext* context,
                                               const v1::ListBestTrialsRequest* request,
                                               v1::ListBestTrialsResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const std::vector<Trial> trials,
                 queries_.ListBestTrials(request->study(), request->count(),
                                         [context] { return context->IsCancelled(); }));
  size_t used = 0;
  for (const Trial& trial : trials) {
    v1::Trial listed = ToProto(Listed(trial));
    used += listed.ByteSizeLong();
    if (used > kPageBytes && response->trials_size() > 0) break;
    *response->add_trials() = std::move(listed);
  }
  return grpc::Status::OK;
}

grpc::Status StudyQueryService::EstimateMemory(grpc::ServerContext* context,
                                               const v1::EstimateMemoryRequest* request,
                                               v1::EstimateMemoryResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const MemoryQuery query, FromMessage<MemoryQuery>(*request));
  HPO_RPC_ASSIGN(const memory::MemoryAnswer answer,
                 queries_.EstimateMemory(request->study(), query));
  *response = ToMessage<v1::EstimateMemoryResponse>(answer);
  return grpc::Status::OK;
}

grpc::Status StudyQueryService::WatchStudy(grpc::ServerContext* context,
                                           const v1::WatchStudyRequest* request,
                                           grpc::ServerWriter<v1::WatchStudyResponse>* writer) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const OpenWatches::Watch watch, watches_.Open(hpo_permit->caller().from));
  return ToGrpc(queries_.WatchStudy(
      request->study(), request->after_sequence(),
      [writer](const WatchEvent& event) { return writer->Write(ToProto(event)); },
      [context] { return context->IsCancelled(); }));
}

}  // namespace hpo::server
