// Tested by tests/integration/page/test_page_api.py.
#include "server/rpc/analysis_service.h"

#include "server/rpc/convert/convert_memory_analysis.h"
#include "server/rpc/rpc_macros.h"

namespace hpo::server {
namespace {

grpc::Status NotYet(const char* what) {
  return ToGrpc(absl::UnimplementedError(absl::StrCat(what, ": this server cannot compute it")));
}

}  // namespace

grpc::Status AnalysisServiceImpl::GetImportance(grpc::ServerContext* context,
                                                const v1::GetImportanceRequest* request,
                                                v1::GetImportanceResponse*) {
  HPO_RPC_ADMIT(context, *request);
  return NotYet("importance");
}

grpc::Status AnalysisServiceImpl::GetCurves(grpc::ServerContext* context,
                                            const v1::GetCurvesRequest* request,
                                            v1::GetCurvesResponse*) {
  HPO_RPC_ADMIT(context, *request);
  return NotYet("curves");
}

grpc::Status AnalysisServiceImpl::GetTimeline(grpc::ServerContext* context,
                                              const v1::GetTimelineRequest* request,
                                              v1::GetTimelineResponse*) {
  HPO_RPC_ADMIT(context, *request);
  return NotYet("the timeline");
}

grpc::Status AnalysisServiceImpl::GetMemoryFrontier(grpc::ServerContext* context,
                                                    const v1::GetMemoryFrontierRequest* request,
                                                    v1::GetMemoryFrontierResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const FrontierQuery query, FromProto(*request));
  HPO_RPC_ASSIGN(const MemoryFrontier frontier, api_.memory().Frontier(request->study(), query));
  *response = ToProto(frontier);
  return grpc::Status::OK;
}

grpc::Status AnalysisServiceImpl::GetMemoryFit(grpc::ServerContext* context,
                                               const v1::GetMemoryFitRequest* request,
                                               v1::GetMemoryFitResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const memory::SpaceSurvey survey,
                 api_.memory().Fit(request->study(), CapacitiesOf(*request)));
  *response = ToProto(survey);
  return grpc::Status::OK;
}

}  // namespace hpo::server
