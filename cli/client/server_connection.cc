#include "cli/client/server_connection.h"

#include <grpc/support/log.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/limits.h"
#include "common/command_line/server_address.h"
#include "common/command_line/shell_word.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "proto/convert/grpc_status.h"

namespace hpo::cli {
namespace {

constexpr absl::Duration kLookInterval = absl::Milliseconds(200);  // at what TLS says

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  gpr_set_log_function([](gpr_log_func_args*) {});  // people get one line, from Describe
  grpc::ChannelArguments arguments;
  // The server is on this machine, or behind a forwarder of this process: a proxy of the
  // environment is for others.
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

ServerConnection::ServerConnection(tls::ServerRoute route, absl::Duration deadline,
                                   ServerSource source)
    : route_(std::move(route)),
      deadline_(deadline),
      source_(source),
      channel_(Connect(route_.dialed)),
      study_(v1::StudyService::NewStub(channel_)),
      admin_(v1::AdminService::NewStub(channel_)),
      fleet_(v1::FleetService::NewStub(channel_)),
      analysis_(v1::AnalysisService::NewStub(channel_)) {}

absl::Status ServerConnection::Describe(const grpc::Status& status) const {
  const bool away = status.error_code() == grpc::StatusCode::UNAVAILABLE &&
                    channel_->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_READY;
  // TLS says more than gRPC, which only sees a connection that ends.
  if (away && !route_.Trouble().ok()) return route_.Trouble();
  const bool needs_join = away && route_.forwarder == nullptr && tls::SpeaksTls(route_.dialed);
  if (needs_join) return tls::NeedsJoinString(route_.shown);
  if (away) {
    absl::Status unreachable = absl::UnavailableError(absl::StrCat(
        "cannot reach hpo-server at ", route_.shown,
        ": is it running? to start one: hpo-server --study criteria", ListenOption(route_.shown),
        "; to read a database file without one: hpo --db FILE"));
    unreachable.SetPayload(kUnreachable, absl::Cord());
    return unreachable;
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::UnimplementedError(
        absl::StrCat("what answers at ", route_.shown, " is not an hpo-server of this version"));
  }
  const absl::Status error = FromGrpc(status);
  return absl::Status(error.code(), WithServer(error.message(), advised_address()));
}

bool ServerConnection::WaitUntilReachable(absl::Duration limit) const {
  const absl::Time end = absl::Now() + limit;
  for (;;) {
    const absl::Duration step = std::min(end - absl::Now(), kLookInterval);
    if (channel_->WaitForConnected(std::chrono::system_clock::now() +
                                   absl::ToChronoMilliseconds(step))) {
      return true;
    }
    const absl::Status trouble = route_.Trouble();
    if (absl::Now() >= end || (!trouble.ok() && !tls::MayWorkLater(trouble))) return false;
  }
}

}  // namespace hpo::cli
