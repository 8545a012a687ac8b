// A client's way to a server: connects, compares the certificate with the join string's, and proves
// that it has the secret, which never leaves the machine.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/tls/join_string.h"
#include "common/tls/openssl_types.h"

namespace hpo::tls {

// An admitted connection. The socket is non-blocking and is the caller's.
struct Dialed {
  SslPtr tls;
  int socket = -1;
};

// Blocks for at most `timeout`. OK once the server has sent its first byte: in TLS 1.3 a client
// learns only then that it is admitted.
//   Unavailable       the address cannot be reached or does not answer in time; may work later
//   Unauthenticated   what answers is another server, or one with another database, or speaks no
//                     TLS
//   PermissionDenied  the server does not accept the join string any more: revoked or expired
absl::StatusOr<Dialed> Dial(const JoinString& join, absl::Duration timeout);

// Enough for the round trips of a handshake with a server on another continent.
inline constexpr absl::Duration kTlsPatience = absl::Seconds(2);

// Whether what answers at "host:port" sets up TLS with anybody, as hpo-server does where other
// machines can connect. False where nothing answers within `timeout`, and for other addresses.
bool SpeaksTls(const std::string& address, absl::Duration timeout = kTlsPatience);

// That a join string is needed at this address, which was given without one.
//   Unauthenticated
absl::Status NeedsJoinString(absl::string_view address);

// Whether the same join string may work later.
bool MayWorkLater(const absl::Status& status);

}  // namespace hpo::tls
