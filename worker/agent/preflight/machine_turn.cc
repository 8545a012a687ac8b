#include "worker/agent/preflight/machine_turn.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace hpo::agent {
namespace {

// Linux tells that a lock is free only to a call that nothing else can end.
constexpr absl::Duration kLockPoll = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<UniqueFd> TakeTurn(const std::string& path, const StopWait& stop) {
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  while (lock.ok() && flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return UniqueFd();
    if (stop(kLockPoll)) return absl::CancelledError("told to stop");
  }
  return lock;
}

}  // namespace hpo::agent
