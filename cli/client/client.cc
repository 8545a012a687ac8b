// Tested by tests/integration/security/test_security_tokens.py.
#include "cli/client/client.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "cli/client/server_connection.h"
#include "cli/client/study_recorder.h"
#include "common/base/status.h"
#include "proto/convert/access_proto.h"
#include "proto/convert/time_proto.h"

namespace hpo::cli {

Client::Client(const std::string& address, absl::Duration deadline, ServerSource source)
    : Client(tls::ServerRoute{.shown = address, .dialed = address, .forwarder = nullptr}, deadline,
             source) {}

Client::Client(tls::ServerRoute route, absl::Duration deadline, ServerSource source)
    : connection_(std::make_unique<ServerConnection>(std::move(route), deadline, source)),
      studies_(*connection_),
      trials_(*connection_),
      fleet_(*connection_) {}

Client::~Client() = default;

const std::string& Client::address() const { return connection_->address(); }

std::string Client::advised_address() const { return connection_->advised_address(); }

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
                      .damage = {response.damage().begin(), response.damage().end()},
                      .page = response.page()};
}

absl::StatusOr<Bytes> Client::BackUp(const std::string& path) {
  const auto start = [this](grpc::ClientContext* context) {
    return connection_->admin().BackUpDatabase(context, v1::BackUpDatabaseRequest());
  };
  HPO_ASSIGN_OR_RETURN(const auto last,
                       connection_->ReceiveFile<v1::BackUpDatabaseResponse>(path, "backup", start));
  return Bytes{last.end().size_bytes()};
}

absl::StatusOr<std::vector<TokenInfo>> Client::ListTokens() {
  HPO_ASSIGN_OR_RETURN(const auto response, connection_->Call(&v1::AdminService::Stub::ListTokens,
                                                              v1::ListTokensRequest()));
  std::vector<TokenInfo> tokens;
  for (const v1::AccessToken& token : response.tokens()) {
    HPO_ASSIGN_OR_RETURN(tokens.emplace_back(), FromProto(token));
  }
  return tokens;
}

absl::StatusOr<NewToken> Client::CreateToken(const std::string& name, Role role,
                                             std::optional<absl::Duration> lifetime) {
  v1::CreateTokenRequest request;
  request.set_name(name);
  request.set_role(ToProto(role));
  if (lifetime) *request.mutable_lifetime() = ToProto(*lifetime);
  HPO_ASSIGN_OR_RETURN(const auto response,
                       connection_->Call(&v1::AdminService::Stub::CreateToken, request));
  HPO_ASSIGN_OR_RETURN(TokenInfo token, FromProto(response.token()));
  return NewToken{.token = std::move(token), .join = response.join()};
}

absl::StatusOr<NewToken> Client::RotateToken(const std::string& name, absl::Duration grace,
                                             std::optional<absl::Duration> lifetime) {
  v1::RotateTokenRequest request;
  request.set_name(name);
  *request.mutable_grace() = ToProto(grace);
  if (lifetime) *request.mutable_lifetime() = ToProto(*lifetime);
  HPO_ASSIGN_OR_RETURN(const auto response,
                       connection_->Call(&v1::AdminService::Stub::RotateToken, request));
  HPO_ASSIGN_OR_RETURN(TokenInfo token, FromProto(response.token()));
  return NewToken{.token = std::move(token), .join = response.join()};
}

absl::Status Client::RevokeToken(const std::string& name) {
  v1::RevokeTokenRequest request;
  request.set_name(name);
  return connection_->Call(&v1::AdminService::Stub::RevokeToken, request).status();
}

bool Client::WaitUntilReachable(absl::Duration limit) {
  return connection_->WaitUntilReachable(limit);
}

bool IsUnreachable(const absl::Status& status) {
  return status.GetPayload(ServerConnection::kUnreachable).has_value();
}

absl::StatusOr<std::string> Client::RecordStudy(const std::string& study) {
  return StudyRecorder(*connection_).Record(study);
}

}  // namespace hpo::cli
