#include "server/rpc/admin_service.h"

#include <optional>
#include <string>

#include "proto/convert/access_proto.h"
#include "proto/convert/time_proto.h"
#include "server/rpc/rpc_macros.h"

namespace hpo::server {

// The overloads of this library would hide those of proto/convert.
using hpo::FromProto;
using hpo::ToProto;

grpc::Status AdminServiceImpl::GetServer(grpc::ServerContext* context, const v1::GetServerRequest*,
                                         v1::GetServerResponse* response) {
  HPO_RPC_ALLOW(context);
  const ServerStatus status = api_.GetServer();
  response->set_version(status.version);
  response->set_database(status.database);
  response->set_epoch(status.epoch);
  response->set_trouble(status.trouble);
  for (const std::string& found : status.damage) response->add_damage(found);
  response->set_page(status.page);
  return grpc::Status::OK;
}

grpc::Status AdminServiceImpl::BackUpDatabase(
    grpc::ServerContext* context, const v1::BackUpDatabaseRequest*,
    grpc::ServerWriter<v1::BackUpDatabaseResponse>* writer) {
  HPO_RPC_ALLOW(context);
  v1::BackUpDatabaseResponse message;
  HPO_RPC_ASSIGN(const AdminApi::BackUpEnd end, api_.BackUp([&](absl::string_view bytes) {
    message.set_data(bytes.data(), bytes.size());
    return writer->Write(message);
  }));
  message.mutable_end()->set_size_bytes(end.size);
  message.mutable_end()->set_sha256(end.sha256);
  writer->Write(message);
  return grpc::Status::OK;
}

grpc::Status AdminServiceImpl::ListTokens(grpc::ServerContext* context,
                                          const v1::ListTokensRequest*,
                                          v1::ListTokensResponse* response) {
  HPO_RPC_ALLOW(context);
  HPO_RPC_ASSIGN(const TokenIssuer* const issuer, api_.Issuer());
  for (const TokenInfo& token : issuer->List()) *response->add_tokens() = ToProto(token);
  return grpc::Status::OK;
}

grpc::Status AdminServiceImpl::CreateToken(grpc::ServerContext* context,
                                           const v1::CreateTokenRequest* request,
                                           v1::CreateTokenResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(TokenIssuer* const issuer, api_.Issuer());
  HPO_RPC_ASSIGN(const Role role, FromProto(request->role()));
  std::optional<absl::Duration> lifetime;
  if (request->has_lifetime()) lifetime = FromProto(request->lifetime());
  HPO_RPC_ASSIGN(const NewToken made, issuer->Create(request->name(), role, lifetime));
  *response->mutable_token() = ToProto(made.token);
  response->set_join(made.join);
  return grpc::Status::OK;
}

grpc::Status AdminServiceImpl::RotateToken(grpc::ServerContext* context,
                                           const v1::RotateTokenRequest* request,
                                           v1::RotateTokenResponse* response) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(TokenIssuer* const issuer, api_.Issuer());
  std::optional<absl::Duration> lifetime;
  if (request->has_lifetime()) lifetime = FromProto(request->lifetime());
  HPO_RPC_ASSIGN(const NewToken made, issuer->Rotate(request->name(), FromProto(request->grace()),
                                                     lifetime, hpo_permit->caller().connection));
  *response->mutable_token() = ToProto(made.token);
  response->set_join(made.join);
  return grpc::Status::OK;
}

grpc::Status AdminServiceImpl::RevokeToken(grpc::ServerContext* context,
                                           const v1::RevokeTokenRequest* request,
                                           v1::RevokeTokenResponse*) {
  HPO_RPC_ADMIT(context, *request);
  HPO_RPC_ASSIGN(TokenIssuer* const issuer, api_.Issuer());
  return ToGrpc(issuer->Revoke(request->name(), hpo_permit->caller().connection));
}

}  // namespace hpo::server
