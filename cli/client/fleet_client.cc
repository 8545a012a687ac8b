// Tested by tests/cli/program/program_test.cc.
#include "cli/client/fleet_client.h"

#include "cli/client/server_connection.h"
#include "common/base/status.h"
#include "proto/convert/study_proto.h"

namespace hpo::cli {
namespace {

template <typename Request>
Request RequestOf(const WorkerChoice& choice) {
  Request request;
  for (const std::string& name : choice.names) request.add_names(name);
  request.set_all(choice.all);
  return request;
}

}  // namespace

absl::StatusOr<std::vector<WorkerStatus>> FleetClient::ListWorkers() {
  grpc::ClientContext context;
  context.set_deadline(connection_.Deadline());
  v1::ListWorkersResponse response;
  HPO_RETURN_IF_ERROR(connection_.Describe(
      connection_.fleet().ListWorkers(&context, v1::ListWorkersRequest(), &response)));
  std::vector<WorkerStatus> workers;
  for (const v1::Worker& worker : response.workers()) {
    HPO_ASSIGN_OR_RETURN(workers.emplace_back(), FromProto(worker));
  }
  return workers;
}

absl::StatusOr<std::vector<std::string>> FleetClient::DrainWorkers(const WorkerChoice& choice,
                                                                   bool now) {
  grpc::ClientContext context;
  context.set_deadline(connection_.Deadline());
  auto request = RequestOf<v1::DrainWorkersRequest>(choice);
  request.set_now(now);
  v1::DrainWorkersResponse response;
  HPO_RETURN_IF_ERROR(
      connection_.Describe(connection_.fleet().DrainWorkers(&context, request, &response)));
  return std::vector<std::string>(response.names().begin(), response.names().end());
}

absl::StatusOr<std::vector<std::string>> FleetClient::ResumeWorkers(const WorkerChoice& choice) {
  grpc::ClientContext context;
  context.set_deadline(connection_.Deadline());
  v1::ResumeWorkersResponse response;
  HPO_RETURN_IF_ERROR(connection_.Describe(connection_.fleet().ResumeWorkers(
      &context, RequestOf<v1::ResumeWorkersRequest>(choice), &response)));
  return std::vector<std::string>(response.names().begin(), response.names().end());
}

}  // namespace hpo::cli
