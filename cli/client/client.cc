#include "cli/client/client.h"

#include <chrono>
#include <memory>
#include <string>

#include "cli/client/server_connection.h"
#include "common/base/status.h"

namespace hpo::cli {

Client::Client(const std::string& address, absl::Duration deadline, ServerSource source)
    : connection_(std::make_unique<ServerConnection>(address, deadline, source)),
      studies_(*connection_),
      trials_(*connection_),
      fleet_(*connection_) {}

Client::~Client() = default;

const std::string& Client::address() const { return connection_->address(); }

absl::StatusOr<ServerStatus> Client::GetServer() {
  grpc::ClientContext context;
  context.set_deadline(connection_->Deadline());
  v1::GetServerResponse response;
  const grpc::Status answered =
      connection_->admin().GetServer(&context, v1::GetServerRequest(), &response);
  if (answered.error_code() == grpc::StatusCode::UNIMPLEMENTED) return ServerStatus{};
  HPO_RETURN_IF_ERROR(connection_->Describe(answered));
  return ServerStatus{.version = response.version(),
                      .database = response.database(),
                      .epoch = response.epoch(),
                      .trouble = response.trouble(),
                      .damage = {response.damage().begin(), response.damage().end()}};
}

absl::StatusOr<Bytes> Client::BackUp(const std::string& path) {
  const auto start = [this](grpc::ClientContext* context) {
    return connection_->admin().BackUpDatabase(context, v1::BackUpDatabaseRequest());
  };
  HPO_ASSIGN_OR_RETURN(const auto last,
                       connection_->ReceiveFile<v1::BackUpDatabaseResponse>(path, "backup", start));
  return Bytes{last.end().size_bytes()};
}

bool Client::WaitUntilReachable(absl::Duration limit) {
  return connection_->channel().WaitForConnected(std::chrono::system_clock::now() +
                                                 absl::ToChronoMilliseconds(limit));
}

bool IsUnreachable(const absl::Status& status) {
  return status.GetPayload(ServerConnection::kUnreachable).has_value();
}

}  // namespace hpo::cli
