#include "server/rpc/admin_service.h"

#include <string>

#include "server/rpc/rpc_macros.h"

namespace hpo::server {

grpc::Status AdminServiceImpl::GetServer(grpc::ServerContext*, const v1::GetServerRequest*,
                                         v1::GetServerResponse* response) {
  const ServerStatus status = api_.GetServer();
  response->set_version(status.version);
  response->set_database(status.database);
  response->set_epoch(status.epoch);
  response->set_trouble(status.trouble);
  for (const std::string& found : status.damage) response->add_damage(found);
  return grpc::Status::OK;
}

grpc::Status AdminServiceImpl::BackUpDatabase(
    grpc::ServerContext*, const v1::BackUpDatabaseRequest*,
    grpc::ServerWriter<v1::BackUpDatabaseResponse>* writer) {
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

}  // namespace hpo::server
