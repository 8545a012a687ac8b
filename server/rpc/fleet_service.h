// FleetService over gRPC: converts and forwards to FleetApi. Thread-safe.
#pragma once

#include "hpo/v1/fleet.grpc.pb.h"
#include "server/access/access_control.h"
#include "server/api/fleet_api.h"

namespace hpo::server {

// Codes: see FleetApi.
class FleetServiceImpl final : public v1::FleetService::Service {
 public:
  // `api` and `access` outlive the service.
  FleetServiceImpl(FleetApi& api, AccessControl& access) : api_(api), access_(access) {}

  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest* request,
                           v1::ListWorkersResponse* response) override;
  grpc::Status DrainWorkers(grpc::ServerContext* context, const v1::DrainWorkersRequest* request,
                            v1::DrainWorkersResponse* response) override;
  grpc::Status ResumeWorkers(grpc::ServerContext* context, const v1::ResumeWorkersRequest* request,
                             v1::ResumeWorkersResponse* response) override;

 private:
  static constexpr char kService[] = "/hpo.v1.FleetService/";

  FleetApi& api_;
  AccessControl& access_;
};

}  // namespace hpo::server
