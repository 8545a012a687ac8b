// AdminService over gRPC: converts and forwards to AdminApi. Thread-safe.
#pragma once

#include "hpo/v1/admin.grpc.pb.h"
#include "server/api/admin_api.h"

namespace hpo::server {

// Codes: see AdminApi.
class AdminServiceImpl final : public v1::AdminService::Service {
 public:
  // `api` outlives the service.
  explicit AdminServiceImpl(AdminApi& api) : api_(api) {}

  grpc::Status GetServer(grpc::ServerContext* context, const v1::GetServerRequest* request,
                         v1::GetServerResponse* response) override;
  grpc::Status BackUpDatabase(grpc::ServerContext* context,
                              const v1::BackUpDatabaseRequest* request,
                              grpc::ServerWriter<v1::BackUpDatabaseResponse>* writer) override;

 private:
  AdminApi& api_;
};

}  // namespace hpo::server
