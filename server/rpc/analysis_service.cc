// Tested by tests/server/analysis/analysis_api_test.cc.
#include "server/rpc/analysis_service.h"

#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "server/rpc/convert/convert_memory_analysis.h"
#include "server/rpc/rpc_macros.h"

namespace hpo::server {
namespace {

double UnixSeconds(absl::Time time) { return static_cast<double>(absl::ToUnixMicros(time)) / 1e6; }

CurvesQuery QueryOf(const v1::GetCurvesRequest& request) {
  CurvesQuery query{.metric = request.metric(),
                    .where = {request.where().begin(), request.where().end()},
                    .count = request.count(),
                    .points = request.points()};
  for (const int32_t number : request.numbers()) query.numbers.push_back(TrialNumber{number});
  return query;
}

}  // namespace

grpc::Status AnalysisServiceImpl::GetImportance(grpc::ServerContext* context,
                                                const v1::GetImportanceRequest* request,
                                                v1::GetImportanceResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  const auto method = request->method() == v1::IMPORTANCE_METHOD_FANOVA
                          ? ImportanceMethod::kFanova
                          : ImportanceMethod::kPedAnova;
  HPO_RPC_ASSIGN(const ImportanceAnswer answer,
                 api_.GetImportance(request->study(), request->metric(), method));
  for (const AssessedParameter& assessed : answer.assessment.parameters) {
    v1::ParameterImportance& one = *response->add_parameters();
    one.set_parameter(assessed.name);
    one.set_share(assessed.share);
    one.set_low(assessed.low);
    one.set_high(assessed.high);
  }
  response->set_trials(answer.num_trials);
  response->set_metric(answer.metric);
  response->set_resamples(answer.assessment.num_resamples);
  response->set_sequence(answer.sequence);
  return grpc::Status::OK;
}

grpc::Status AnalysisServiceImpl::GetCurves(grpc::ServerContext* context,
                                            const v1::GetCurvesRequest* request,
                                            v1::GetCurvesResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const CurvesAnswer answer, api_.GetCurves(request->study(), QueryOf(*request)));
  for (const Curve& curve : answer.curves) {
    v1::Curve& one = *response->add_curves();
    one.set_number(static_cast<int32_t>(curve.number.value));
    one.set_state(std::string(1, curve.state));
    one.mutable_steps()->Add(curve.points.steps.begin(), curve.points.steps.end());
    one.mutable_values()->Add(curve.points.values.begin(), curve.points.values.end());
  }
  response->set_metric(answer.metric);
  for (const std::string& metric : answer.metrics) response->add_metrics(metric);
  response->set_sequence(answer.sequence);
  return grpc::Status::OK;
}

grpc::Status AnalysisServiceImpl::GetTimeline(grpc::ServerContext* context,
                                              const v1::GetTimelineRequest* request,
                                              v1::GetTimelineResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const Timeline timeline, api_.GetTimeline(request->study(), request->count()));
  std::map<std::string, int32_t> places;
  for (const TimelineEntry& entry : timeline.entries) {
    const auto place = static_cast<int32_t>(places.size());
    const auto [worker, is_new] = places.try_emplace(entry.worker, place);
    if (is_new) response->add_workers(entry.worker);
    response->add_worker_indexes(worker->second);
    response->add_numbers(static_cast<int32_t>(entry.trial.value));
    response->add_attempts(static_cast<int32_t>(entry.attempt.value));
    response->add_started(UnixSeconds(entry.started));
    response->add_ended(entry.ended == absl::InfinitePast() ? 0.0 : UnixSeconds(entry.ended));
    response->mutable_uses()->push_back(entry.use);
  }
  response->set_left_off(timeline.left_off);
  return grpc::Status::OK;
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
