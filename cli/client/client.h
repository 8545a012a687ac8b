// The server as the CLI sees it, in values.
//
// Codes of every call, apart from the server's own:
//   Unavailable  "cannot reach hpo-server at ADDRESS: is it running? start it with: ..."
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/client/advice.h"
#include "cli/client/fleet_client.h"
#include "cli/client/study_client.h"
#include "cli/client/trial_client.h"
#include "common/base/bytes.h"
#include "common/protocol/access.h"
#include "common/protocol/server_status.h"
#include "common/tls/server_route.h"

namespace hpo::cli {

// Thread-safe. Calls have a deadline.
class Client {
 public:
  // `address` as gRPC takes it: "127.0.0.1:50051", "unix:/path". Connects with the first call.
  explicit Client(const std::string& address, absl::Duration deadline = absl::Seconds(30),
                  ServerSource source = ServerSource::kServer);
  // Also through TLS.
  explicit Client(tls::ServerRoute route, absl::Duration deadline = absl::Seconds(30),
                  ServerSource source = ServerSource::kServer);
  ~Client();

  const std::string& address() const;
  // What commands that are advised have to name by --server; empty: nothing, as the environment or
  // the caller has a join string.
  std::string advised_address() const;

  StudyClient& studies() { return studies_; }
  TrialClient& trials() { return trials_; }
  FleetClient& fleet() { return fleet_; }

  // A server of an earlier version, which does not tell, is one without trouble.
  absl::StatusOr<ServerStatus> GetServer();
  // Writes a copy of the server's database to `path`, whole or not at all; what was there is
  // replaced. Its size.
  //   DataLoss  it arrived damaged
  //   NotFound, PermissionDenied, ResourceExhausted  `path` cannot be written
  absl::StatusOr<Bytes> BackUp(const std::string& path);

  // Tokens of a server that other machines can reach; codes: admin.proto.
  absl::StatusOr<std::vector<TokenInfo>> ListTokens();
  // `lifetime` nullopt: it does not expire, or for a rotation: as before.
  absl::StatusOr<NewToken> CreateToken(const std::string& name, Role role,
                                       std::optional<absl::Duration> lifetime);
  absl::StatusOr<NewToken> RotateToken(const std::string& name, absl::Duration grace,
                                       std::optional<absl::Duration> lifetime);
  absl::Status RevokeToken(const std::string& name);

  // Waits for the server to be there (again). False: `limit` is over, or waiting does not help.
  bool WaitUntilReachable(absl::Duration limit);

  // What the page shows of a study, as the JSON of an exported page (web/API.md).
  //   NotFound  there is no such study
  absl::StatusOr<std::string> RecordStudy(const std::string& study);

 private:
  const std::unique_ptr<ServerConnection> connection_;
  StudyClient studies_;
  TrialClient trials_;
  FleetClient fleet_;
};

// Whether a call has failed because no server answers.
bool IsUnreachable(const absl::Status& status);

}  // namespace hpo::cli
