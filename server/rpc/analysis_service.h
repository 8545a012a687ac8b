// AnalysisService over gRPC: converts and forwards to AnalysisApi. Thread-safe.
#pragma once

#include "hpo/v1/analysis.grpc.pb.h"
#include "server/access/access_control.h"
#include "server/analysis/analysis_api.h"

namespace hpo::server {

// Codes: see AnalysisApi.
class AnalysisServiceImpl final : public v1::AnalysisService::Service {
 public:
  // `api` and `access` outlive the service.
  AnalysisServiceImpl(const AnalysisApi& api, AccessControl& access) : api_(api), access_(access) {}

  grpc::Status GetImportance(grpc::ServerContext* context, const v1::GetImportanceRequest* request,
                             v1::GetImportanceResponse* response) override;
  grpc::Status GetCurves(grpc::ServerContext* context, const v1::GetCurvesRequest* request,
                         v1::GetCurvesResponse* response) override;
  grpc::Status GetTimeline(grpc::ServerContext* context, const v1::GetTimelineRequest* request,
                           v1::GetTimelineResponse* response) override;
  grpc::Status GetMemoryFrontier(grpc::ServerContext* context,
                                 const v1::GetMemoryFrontierRequest* request,
                                 v1::GetMemoryFrontierResponse* response) override;
  grpc::Status GetMemoryFit(grpc::ServerContext* context, const v1::GetMemoryFitRequest* request,
                            v1::GetMemoryFitResponse* response) override;

 private:
  static constexpr char kService[] = "/hpo.v1.AnalysisService/";

  const AnalysisApi& api_;
  AccessControl& access_;
};

}  // namespace hpo::server
