// AdminService over gRPC: converts and forwards to AdminApi. Thread-safe.
#pragma once

#include "hpo/v1/admin.grpc.pb.h"
#include "server/access/access_control.h"
#include "server/api/admin_api.h"

namespace hpo::server {

// Codes: see AdminApi.
class AdminServiceImpl final : public v1::AdminService::Service {
 public:
  // `api` and `access` outlive the service.
  AdminServiceImpl(AdminApi& api, AccessControl& access) : api_(api), access_(access) {}

  grpc::Status GetServer(grpc::ServerContext* context, const v1::GetServerRequest* request,
                         v1::GetServerResponse* response) override;
  grpc::Status BackUpDatabase(grpc::ServerContext* context,
                              const v1::BackUpDatabaseRequest* request,
                              grpc::ServerWriter<v1::BackUpDatabaseResponse>* writer) override;
  grpc::Status ListTokens(grpc::ServerContext* context, const v1::ListTokensRequest* request,
                          v1::ListTokensResponse* response) override;
  grpc::Status CreateToken(grpc::ServerContext* context, const v1::CreateTokenRequest* request,
                           v1::CreateTokenResponse* response) override;
  grpc::Status RotateToken(grpc::ServerContext* context, const v1::RotateTokenRequest* request,
                           v1::RotateTokenResponse* response) override;
  grpc::Status RevokeToken(grpc::ServerContext* context, const v1::RevokeTokenRequest* request,
                           v1::RevokeTokenResponse* response) override;

 private:
  static constexpr char kService[] = "/hpo.v1.AdminService/";

  AdminApi& api_;
  AccessControl& access_;
};

}  // namespace hpo::server
