#include "cli/client/server_connection.h"

#include <grpc/support/log.h>

#include <memory>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/command_line/server_address.h"
#include "common/command_line/shell_word.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "proto/convert/grpc_status.h"

namespace hpo::cli {
namespace {

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  gpr_set_log_function([](gpr_log_func_args*) {});  // people get one line, from Describe
  grpc::ChannelArguments arguments;
  // The server speaks plaintext on this machine alone: a proxy of the environment is for others.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMessageLimit.most);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// hpo-server's option for this address, where it is not the usual one.
std::string ListenOption(const std::string& address) {
  return IsUsualAddress(address) ? "" : absl::StrCat(" --listen ", ShellWord(address));
}

}  // namespace

ServerConnection::ServerConnection(const std::string& address, absl::Duration deadline,
                                   ServerSource source)
    : address_(address),
      deadline_(deadline),
      source_(source),
      channel_(Connect(address)),
      study_(v1::StudyService::NewStub(channel_)),
      admin_(v1::AdminService::NewStub(channel_)),
      fleet_(v1::FleetService::NewStub(channel_)) {}

absl::Status ServerConnection::Describe(const grpc::Status& status) const {
  const bool away = status.error_code() == grpc::StatusCode::UNAVAILABLE &&
                    channel_->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_READY;
  if (away) {
    absl::Status unreachable = absl::UnavailableError(absl::StrCat(
        "cannot reach hpo-server at ", address_,
        ": is it running? to start one: hpo-server --study criteria", ListenOption(address_),
        "; to read a database file without one: hpo --db FILE"));
    unreachable.SetPayload(kUnreachable, absl::Cord());
    return unreachable;
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::UnimplementedError(
        absl::StrCat("what answers at ", address_, " is not an hpo-server of this version"));
  }
  const absl::Status error = FromGrpc(status);
  return absl::Status(
      error.code(), WithServer(error.message(), source_ == ServerSource::kServer ? address_ : ""));
}

}  // namespace hpo::cli
