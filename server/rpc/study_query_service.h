// The calls of StudyService that read, over gRPC: converts and forwards to StudyQueries.
// Thread-safe, as gRPC calls it from its pool; WatchStudy holds a thread of it for as long as the
// client watches.
#pragma once

#include "hpo/v1/study.grpc.pb.h"
#include "server/access/access_control.h"
#include "server/api/study_queries.h"
#include "server/rpc/open_watches.h"

namespace hpo::server {

// Codes: see StudyQueries; InvalidArgument where a message does not convert.
class StudyQueryService : public v1::StudyService::Service {
 public:
  // `queries` and `access` outlive the service.
  StudyQueryService(const StudyQueries& queries, AccessControl& access)
      : access_(access), queries_(queries) {}

  grpc::Status GetStudy(grpc::ServerContext* context, const v1::GetStudyRequest* request,
                        v1::GetStudyResponse* response) final;
  grpc::Status ListStudies(grpc::ServerContext* context, const v1::ListStudiesRequest* request,
                           v1::ListStudiesResponse* response) final;
  grpc::Status ListTrials(grpc::ServerContext* context, const v1::ListTrialsRequest* request,
                          v1::ListTrialsResponse* response) final;
  grpc::Status GetTrial(grpc::ServerContext* context, const v1::GetTrialRequest* request,
                        v1::GetTrialResponse* response) final;
  grpc::Status QueryTrials(grpc::ServerContext* context, const v1::QueryTrialsRequest* request,
                           v1::QueryTrialsResponse* response) final;
  grpc::Status GetHistory(grpc::ServerContext* context, const v1::GetHistoryRequest* request,
                          v1::GetHistoryResponse* response) final;
  grpc::Status ListBestTrials(grpc::ServerContext* context,
                              const v1::ListBestTrialsRequest* request,
                              v1::ListBestTrialsResponse* response) final;
  grpc::Status EstimateMemory(grpc::ServerContext* context,
                              const v1::EstimateMemoryRequest* request,
                              v1::EstimateMemoryResponse* response) final;
  grpc::Status WatchStudy(grpc::ServerContext* context, const v1::WatchStudyRequest* request,
                          grpc::ServerWriter<v1::WatchStudyResponse>* writer) final;

 protected:
  static constexpr char kService[] = "/hpo.v1.StudyService/";
  AccessControl& access_;

 private:
  absl::Status FillPage(const grpc::ServerContext* context, const v1::ListTrialsRequest& request,
                        v1::ListTrialsResponse& response);

  const StudyQueries& queries_;
  OpenWatches watches_;
};

}  // namespace hpo::server
