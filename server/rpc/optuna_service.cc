// Tested by tests/integration/test_optuna_storage.py.
#include "server/rpc/optuna_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "proto/convert/grpc_status.h"
#include "proto/convert/params_proto.h"
#include "server/rpc/convert/convert_optuna.h"
#include "server/rpc/rpc_macros.h"

namespace hpo::server {
namespace {

constexpr auto kMostBytes = static_cast<size_t>(kOptunaAnswerLimit.most);

}  // namespace

grpc::Status OptunaServiceImpl::CreateNewStudy(grpc::ServerContext* context,
                                               const optuna::CreateNewStudyRequest* request,
                                               optuna::CreateNewStudyReply* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const int64_t study,
                 api_.CreateStudy(request->study_name(), FromProto(request->directions())));
  response->set_study_id(study);
  return grpc::Status::OK;
}

grpc::Status OptunaServiceImpl::DeleteStudy(grpc::ServerContext* context,
                                            const optuna::DeleteStudyRequest* request,
                                            optuna::DeleteStudyReply*) {
  HPO_RPC_ADMIT(context, *request);
  return ToGrpc(api_.DeleteStudy(request->study_id()));
}

grpc::Status OptunaServiceImpl::SetStudyUserAttribute(
    grpc::ServerContext* context, const optuna::SetStudyUserAttributeRequest* request,
    optuna::SetStudyUserAttributeReply*) {
  HPO_RPC_ADMIT(context, *request);
  return ToGrpc(api_.SetStudyAttribute(request->study_id(), OptunaAttribute::kUser, request->key(),
                                       request->value()));
}

grpc::Status OptunaServiceImpl::SetStudySystemAttribute(
    grpc::ServerContext* context, const optuna::SetStudySystemAttributeRequest* request,
    optuna::SetStudySystemAttributeReply*) {
  HPO_RPC_ADMIT(context, *request);
  return ToGrpc(api_.SetStudyAttribute(request->study_id(), OptunaAttribute::kSystem,
                                       request->key(), request->value()));
}

grpc::Status OptunaServiceImpl::GetStudyIdFromName(grpc::ServerContext* context,
                                                   const optuna::GetStudyIdFromNameRequest* request,
                                                   optuna::GetStudyIdFromNameReply* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const int64_t study, api_.FindStudy(request->study_name()));
  response->set_study_id(study);
  return grpc::Status::OK;
}

grpc::Status OptunaServiceImpl::GetStudyNameFromId(grpc::ServerContext* context,
                                                   const optuna::GetStudyNameFromIdRequest* request,
                                                   optuna::GetStudyNameFromIdReply* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const OptunaStudySummary study, api_.GetStudy(request->study_id()));
  response->set_study_name(study.name);
  return grpc::Status::OK;
}

grpc::Status OptunaServiceImpl::GetStudyDirections(grpc::ServerContext* context,
                                                   const optuna::GetStudyDirectionsRequest* request,
                                                   optuna::GetStudyDirectionsReply* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const OptunaStudySummary study, api_.GetStudy(request->study_id()));
  for (const Direction direction : study.directions) response->add_directions(ToProto(direction));
  return grpc::Status::OK;
}

grpc::Status OptunaServiceImpl::GetStudyUserAttributes(
    grpc::ServerContext* context, const optuna::GetStudyUserAttributesRequest* request,
    optuna::GetStudyUserAttributesReply* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const OptunaStudySummary study, api_.GetStudy(request->study_id()));
  *response->mutable_user_attributes() = hpo::ToProto(study.user_attributes);
  return grpc::Status::OK;
}

grpc::Status OptunaServiceImpl::GetStudySystemAttributes(
    grpc::ServerContext* context, const optuna::GetStudySystemAttributesRequest* request,
    optuna::GetStudySystemAttributesReply* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const OptunaStudySummary study, api_.GetStudy(request->study_id()));
  *response->mutable_system_attributes() = hpo::ToProto(study.system_attributes);
  return grpc::Status::OK;
}

grpc::Status OptunaServiceImpl::GetAllStudies(grpc::ServerContext* context,
                                              const optuna::GetAllStudiesRequest* request,
                                              optuna::GetAllStudiesReply* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const std::vector<OptunaStudySummary> studies, api_.ListStudies());
  for (const OptunaStudySummary& study : studies) {
    optuna::Study& proto = *response->add_studies();
    proto.set_study_id(study.id);
    proto.set_study_name(study.name);
    for (const Direction direction : study.directions) proto.add_directions(ToProto(direction));
    *proto.mutable_user_attributes() = hpo::ToProto(study.user_attributes);
    *proto.mutable_system_attributes() = hpo::ToProto(study.system_attributes);
  }
  return grpc::Status::OK;
}

grpc::Status OptunaServiceImpl::CreateNewTrial(grpc::ServerContext* context,
                                               const optuna::CreateNewTrialRequest* request,
                                               optuna::CreateNewTrialReply* response) {
  HPO_RPC_ADMIT(context, *request);
  if (request->template_trial_is_none()) {
    HPO_RPC_ASSIGN(const int64_t trial, api_.StartTrial(request->study_id()));
    response->set_trial_id(trial);
    return grpc::Status::OK;
  }
  HPO_RPC_ASSIGN(const OptunaTrial given, FromProto(request->template_trial()));
  HPO_RPC_ASSIGN(const int64_t trial, api_.CreateTrial(request->study_id(), given));
  response->set_trial_id(trial);
  return grpc::Status::OK;
}

grpc::Status OptunaServiceImpl::SetTrialParameter(grpc::ServerContext* context,
                                                  const optuna::SetTrialParameterRequest* request,
                                                  optuna::SetTrialParameterReply*) {
  HPO_RPC_ADMIT(context, *request);
  return ToGrpc(api_.SetParam(
      request->trial_id(),
      {request->param_name(), request->param_value_internal(), request->distribution()}));
}

grpc::Status OptunaServiceImpl::GetTrialIdFromStudyIdTrialNumber(
    grpc::ServerContext* context, const optuna::GetTrialIdFromStudyIdTrialNumberRequest* request,
    optuna::GetTrialIdFromStudyIdTrialNumberReply* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const int64_t trial, api_.FindTrial(request->study_id(), request->trial_number()));
  response->set_trial_id(trial);
  return grpc::Status::OK;
}

grpc::Status OptunaServiceImpl::SetTrialStateValues(
    grpc::ServerContext* context, const optuna::SetTrialStateValuesRequest* request,
    optuna::SetTrialStateValuesReply* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const bool updated,
                 api_.SetState(request->trial_id(), FromProto(request->state()),
                               {request->values().begin(), request->values().end()}));
  response->set_trial_updated(updated);
  return grpc::Status::OK;
}

grpc::Status OptunaServiceImpl::SetTrialIntermediateValue(
    grpc::ServerContext* context, const optuna::SetTrialIntermediateValueRequest* request,
    optuna::SetTrialIntermediateValueReply*) {
  HPO_RPC_ADMIT(context, *request);
  return ToGrpc(api_.SetIntermediateValue(request->trial_id(), request->step(),
                                          request->intermediate_value()));
}

grpc::Status OptunaServiceImpl::SetTrialUserAttribute(
    grpc::ServerContext* context, const optuna::SetTrialUserAttributeRequest* request,
    optuna::SetTrialUserAttributeReply*) {
  HPO_RPC_ADMIT(context, *request);
  return ToGrpc(api_.SetTrialAttribute(request->trial_id(), OptunaAttribute::kUser, request->key(),
                                       request->value()));
}

grpc::Status OptunaServiceImpl::SetTrialSystemAttribute(
    grpc::ServerContext* context, const optuna::SetTrialSystemAttributeRequest* request,
    optuna::SetTrialSystemAttributeReply*) {
  HPO_RPC_ADMIT(context, *request);
  return ToGrpc(api_.SetTrialAttribute(request->trial_id(), OptunaAttribute::kSystem,
                                       request->key(), request->value()));
}

grpc::Status OptunaServiceImpl::GetTrial(grpc::ServerContext* context,
                                         const optuna::GetTrialRequest* request,
                                         optuna::GetTrialReply* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const OptunaTrial trial, api_.GetTrial(request->trial_id()));
  ToProto(trial, *response->mutable_trial());
  return grpc::Status::OK;
}

grpc::Status OptunaServiceImpl::GetTrials(grpc::ServerContext* context,
                                          const optuna::GetTrialsRequest* request,
                                          optuna::GetTrialsReply* response) {
  HPO_RPC_ADMIT(context, *request);
  OptunaTrialQuery query{.after = request->trial_id_greater_than()};
  query.included = {request->included_trial_ids().begin(), request->included_trial_ids().end()};
  // The client takes an answer for all there is, so that it cannot be cut into pages.
  size_t bytes = 0;
  return ToGrpc(
      api_.GetTrials(request->study_id(), query, [&](const OptunaTrial& trial) -> absl::Status {
        if (context->IsCancelled()) return absl::CancelledError("the caller has left");
        optuna::Trial& proto = *response->add_trials();
        ToProto(trial, proto);
        bytes += proto.ByteSizeLong();
        if (bytes <= kMostBytes) return absl::OkStatus();
        return absl::ResourceExhaustedError(absl::StrCat("expected trials of at most ", kMostBytes,
                                                         " bytes together, got more by trial ",
                                                         trial.number));
      }));
}

}  // namespace hpo::server
