// Tested by tests/cli/program/program_test.cc.
#include "server/rpc/fleet_service.h"

#include <string>
#include <vector>

#include "proto/convert/study_proto.h"
#include "server/rpc/rpc_macros.h"

namespace hpo::server {
namespace {

WorkerChoice Choice(const auto& request) {
  return {.names = {request.names().begin(), request.names().end()}, .all = request.all()};
}

}  // namespace

grpc::Status FleetServiceImpl::ListWorkers(grpc::ServerContext* context,
                                           const v1::ListWorkersRequest*,
                                           v1::ListWorkersResponse* response) {
  HPO_RPC_ALLOW(context);
  for (const WorkerStatus& worker : api_.ListWorkers()) {
    *response->add_workers() = hpo::ToProto(worker);
  }
  return grpc::Status::OK;
}

grpc::Status FleetServiceImpl::DrainWorkers(grpc::ServerContext* context,
                                            const v1::DrainWorkersRequest* request,
                                            v1::DrainWorkersResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const std::vector<std::string> names,
                 api_.DrainWorkers(Choice(*request), request->now()));
  for (const std::string& name : names) response->add_names(name);
  return grpc::Status::OK;
}

grpc::Status FleetServiceImpl::ResumeWorkers(grpc::ServerContext* context,
                                             const v1::ResumeWorkersRequest* request,
                                             v1::ResumeWorkersResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(const std::vector<std::string> names, api_.ResumeWorkers(Choice(*request)));
  for (const std::string& name : names) response->add_names(name);
  return grpc::Status::OK;
}

}  // namespace hpo::server
