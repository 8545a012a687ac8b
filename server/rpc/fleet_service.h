// FleetService over gRPC: converts and forwards to FleetApi. Thread-safe.
#pragma once

#include "hpo/v1/fleet.grpc.pb.h"
#include "server/api/fleet_api.h"

namespace hpo::server {

// Codes: see FleetApi.
class FleetServiceImpl final : public v1::FleetService::Service {
 public:
  // `api` outlives the service.
  explicit FleetServiceImpl(FleetApi& api) : api_(api) {}

  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest* request,
                           v1::ListWorkersResponse* response) override;
  grpc::Status DrainWorkers(grpc::ServerContext* context, const v1::DrainWorkersRequest* request,
                            v1::DrainWorkersResponse* response) override;
  grpc::Status ResumeWorkers(grpc::ServerContext* context, const v1::ResumeWorkersRequest* request,
                             v1::ResumeWorkersResponse* response) override;

 private:
  FleetApi& api_;
};

}  // namespace hpo::server
