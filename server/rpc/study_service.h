// StudyService over gRPC: converts and forwards to StudyApi. Thread-safe, as gRPC calls it from its
// pool.
#pragma once

#include "hpo/v1/study.grpc.pb.h"
#include "server/api/study_api.h"
#include "server/rpc/study_query_service.h"

namespace hpo::server {

// The calls that change something; those that read are StudyQueryService's. Codes: see StudyApi;
// InvalidArgument where a message does not convert.
class StudyServiceImpl final : public StudyQueryService {
 public:
  // `api` and `access` outlive the service.
  StudyServiceImpl(StudyApi& api, AccessControl& access)
      : StudyQueryService(api.queries(), access), api_(api) {}

  grpc::Status CreateStudy(grpc::ServerContext* context, const v1::CreateStudyRequest* request,
                           v1::CreateStudyResponse* response) override;
  grpc::Status UpdateStudy(grpc::ServerContext* context, const v1::UpdateStudyRequest* request,
                           v1::UpdateStudyResponse* response) override;
  grpc::Status EditStudy(grpc::ServerContext* context, const v1::EditStudyRequest* request,
                         v1::EditStudyResponse* response) override;
  grpc::Status ArchiveStudy(grpc::ServerContext* context, const v1::ArchiveStudyRequest* request,
                            grpc::ServerWriter<v1::ArchiveStudyResponse>* writer) override;
  grpc::Status RestoreStudy(grpc::ServerContext* context,
                            grpc::ServerReader<v1::RestoreStudyRequest>* reader,
                            v1::RestoreStudyResponse* response) override;
  grpc::Status DeleteStudy(grpc::ServerContext* context, const v1::DeleteStudyRequest* request,
                           v1::DeleteStudyResponse* response) override;
  grpc::Status EnqueueTrial(grpc::ServerContext* context, const v1::EnqueueTrialRequest* request,
                            v1::EnqueueTrialResponse* response) override;
  grpc::Status PreemptTrial(grpc::ServerContext* context, const v1::PreemptTrialRequest* request,
                            v1::PreemptTrialResponse* response) override;
  grpc::Status StopTrial(grpc::ServerContext* context, const v1::StopTrialRequest* request,
                         v1::StopTrialResponse* response) override;
  grpc::Status CancelTrial(grpc::ServerContext* context, const v1::CancelTrialRequest* request,
                           v1::CancelTrialResponse* response) override;
  grpc::Status OrderStudy(grpc::ServerContext* context, const v1::OrderStudyRequest* request,
                          v1::OrderStudyResponse* response) override;
  grpc::Status Annotate(grpc::ServerContext* context, const v1::AnnotateRequest* request,
                        v1::AnnotateResponse* response) override;
  grpc::Status RetryTrials(grpc::ServerContext* context, const v1::RetryTrialsRequest* request,
                           v1::RetryTrialsResponse* response) override;
  grpc::Status ImportTrials(grpc::ServerContext* context,
                            grpc::ServerReader<v1::ImportTrialsRequest>* reader,
                            v1::ImportTrialsResponse* response) override;

 private:
  StudyApi& api_;
};

}  // namespace hpo::server
