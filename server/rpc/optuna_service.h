// Optuna's StorageService over gRPC: converts and forwards to OptunaApi. Thread-safe.
#pragma once

#include "optuna/storage.grpc.pb.h"
#include "server/access/access_control.h"
#include "server/optuna/optuna_api.h"

namespace hpo::server {

// Codes: see OptunaApi; InvalidArgument where a message does not convert, ResourceExhausted where
// an answer would be larger than kOptunaAnswerLimit. What GrpcStorageProxy makes of them:
// NotFound is KeyError, AlreadyExists DuplicatedStudyError, FailedPrecondition
// UpdateFinishedTrialError, InvalidArgument of a parameter ValueError.
class OptunaServiceImpl final : public optuna::StorageService::Service {
 public:
  // `api` and `access` outlive the service.
  OptunaServiceImpl(OptunaApi& api, AccessControl& access) : api_(api), access_(access) {}

  grpc::Status CreateNewStudy(grpc::ServerContext* context,
                              const optuna::CreateNewStudyRequest* request,
                              optuna::CreateNewStudyReply* response) override;
  grpc::Status DeleteStudy(grpc::ServerContext* context, const optuna::DeleteStudyRequest* request,
                           optuna::DeleteStudyReply* response) override;
  grpc::Status SetStudyUserAttribute(grpc::ServerContext* context,
                                     const optuna::SetStudyUserAttributeRequest* request,
                                     optuna::SetStudyUserAttributeReply* response) override;
  grpc::Status SetStudySystemAttribute(grpc::ServerContext* context,
                                       const optuna::SetStudySystemAttributeRequest* request,
                                       optuna::SetStudySystemAttributeReply* response) override;
  grpc::Status GetStudyIdFromName(grpc::ServerContext* context,
                                  const optuna::GetStudyIdFromNameRequest* request,
                                  optuna::GetStudyIdFromNameReply* response) override;
  grpc::Status GetStudyNameFromId(grpc::ServerContext* context,
                                  const optuna::GetStudyNameFromIdRequest* request,
                                  optuna::GetStudyNameFromIdReply* response) override;
  grpc::Status GetStudyDirections(grpc::ServerContext* context,
                                  const optuna::GetStudyDirectionsRequest* request,
                                  optuna::GetStudyDirectionsReply* response) override;
  grpc::Status GetStudyUserAttributes(grpc::ServerContext* context,
                                      const optuna::GetStudyUserAttributesRequest* request,
                                      optuna::GetStudyUserAttributesReply* response) override;
  grpc::Status GetStudySystemAttributes(grpc::ServerContext* context,
                                        const optuna::GetStudySystemAttributesRequest* request,
                                        optuna::GetStudySystemAttributesReply* response) override;
  grpc::Status GetAllStudies(grpc::ServerContext* context,
                             const optuna::GetAllStudiesRequest* request,
                             optuna::GetAllStudiesReply* response) override;
  grpc::Status CreateNewTrial(grpc::ServerContext* context,
                              const optuna::CreateNewTrialRequest* request,
                              optuna::CreateNewTrialReply* response) override;
  grpc::Status SetTrialParameter(grpc::ServerContext* context,
                                 const optuna::SetTrialParameterRequest* request,
                                 optuna::SetTrialParameterReply* response) override;
  grpc::Status GetTrialIdFromStudyIdTrialNumber(
      grpc::ServerContext* context, const optuna::GetTrialIdFromStudyIdTrialNumberRequest* request,
      optuna::GetTrialIdFromStudyIdTrialNumberReply* response) override;
  grpc::Status SetTrialStateValues(grpc::ServerContext* context,
                                   const optuna::SetTrialStateValuesRequest* request,
                                   optuna::SetTrialStateValuesReply* response) override;
  grpc::Status SetTrialIntermediateValue(grpc::ServerContext* context,
                                         const optuna::SetTrialIntermediateValueRequest* request,
                                         optuna::SetTrialIntermediateValueReply* response) override;
  grpc::Status SetTrialUserAttribute(grpc::ServerContext* context,
                                     const optuna::SetTrialUserAttributeRequest* request,
                                     optuna::SetTrialUserAttributeReply* response) override;
  grpc::Status SetTrialSystemAttribute(grpc::ServerContext* context,
                                       const optuna::SetTrialSystemAttributeRequest* request,
                                       optuna::SetTrialSystemAttributeReply* response) override;
  grpc::Status GetTrial(grpc::ServerContext* context, const optuna::GetTrialRequest* request,
                        optuna::GetTrialReply* response) override;
  grpc::Status GetTrials(grpc::ServerContext* context, const optuna::GetTrialsRequest* request,
                         optuna::GetTrialsReply* response) override;

 private:
  static constexpr char kService[] = "/optuna.StorageService/";

  OptunaApi& api_;
  AccessControl& access_;
};

}  // namespace hpo::server
