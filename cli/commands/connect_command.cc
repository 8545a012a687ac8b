#include "cli/commands/connect_command.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/client/interrupts.h"
#include "common/base/status.h"
#include "common/command_line/end_with.h"
#include "common/command_line/listen_address.h"
#include "common/files/write_file.h"
#include "common/tls/forwarder.h"
#include "common/tls/server_route.h"

namespace hpo::cli {
namespace {

constexpr int kLookMilliseconds = 500;

absl::StatusOr<ListenAddress> ReadAddress(const std::string& text) {
  HPO_ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(text));
  if (address.IsUnix() || address.IsLoopback()) return address;
  return absl::InvalidArgumentError(absl::StrCat(
      "--listen: expected an address of this machine alone, such as 127.0.0.1:50051 or "
      "unix:/path/to/socket, got '",
      text, "', which others can reach without a token"));
}

}  // namespace

absl::Status Connect(Session& session, const ConnectOptions& options) {
  HPO_ASSIGN_OR_RETURN(ListenAddress address, ReadAddress(options.listen));
  HPO_ASSIGN_OR_RETURN(const std::optional<tls::JoinSource> join,
                       tls::JoinSource::Find(session.join));
  if (!join) {
    return absl::InvalidArgumentError(
        "expected a join string: --join hpo1...., HPO_JOIN or HPO_JOIN_FILE");
  }
  HPO_ASSIGN_OR_RETURN(const tls::JoinString server, join->Read());
  HPO_RETURN_IF_ERROR(CountInterrupts());
  if (options.end_with) HPO_RETURN_IF_ERROR(EndWith(*options.end_with));
  const mode_t mask = umask(S_IRWXG | S_IRWXO);
  const absl::StatusOr<int> listener = BindAndListen(address);
  umask(mask);
  HPO_RETURN_IF_ERROR(listener.status());
  const std::unique_ptr<tls::Forwarder> forwarder = tls::Forwarder::Start(
      *listener, {.join = [source = *join] { return source.Read(); }, .on_change = nullptr});
  const absl::Status reached = forwarder->Check();
  if (!reached.ok() && !tls::MayWorkLater(reached)) return reached;
  const std::string local = FormatListenAddress(address);
  session.out << local << " leads to hpo-server at " << server.Address() << " ("
              << (reached.ok() ? "it answers" : std::string(reached.message()))
              << "); Ctrl-C ends it" << std::endl;
  if (!options.address_file.empty()) {
    HPO_RETURN_IF_ERROR(WriteFileAtomically(options.address_file, local + "\n"));
  }
  while (InterruptsSeen() == 0) {
    pollfd event{.fd = InterruptEvents(), .events = POLLIN, .revents = 0};
    poll(&event, 1, kLookMilliseconds);
    const absl::Status now = forwarder->status();
    if (!now.ok() && !tls::MayWorkLater(now)) return now;
  }
  if (address.IsUnix()) unlink(address.unix_path.c_str());
  return absl::OkStatus();
}

}  // namespace hpo::cli
