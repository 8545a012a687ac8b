// Whose a worker's name is. A name belongs to one process at a time: two processes that took each
// other's leases would run no trial to its end.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hpo::server {

// How a process came to its name: what the loss of the former holder's leases means.
enum class NameGrant {
  kFree,       // nobody held it, or the holder had said goodbye
  kSuccessor,  // the holder's own state folder names it as dead
  kTakenOver,  // the holder fell silent
};

// A process that has a name, or asks for it.
struct NamedProcess {
  std::string name;
  std::string instance_key;
  // The instance key of the last process before it that used the same state folder, whose lock it
  // has; empty: none is known.
  std::string predecessor;
};

// Times are readings of Clock::Monotonic(). Not thread-safe.
class WorkerNames {
 public:
  // `patience`: how long a newcomer waits for a sign of life of the holder.
  explicit WorkerNames(absl::Duration patience) : patience_(patience) {}

  // `process` asks for its name. It holds the name from now on, or
  //   Unavailable    another process holds it, silent since this one first asked: ask again
  //   AlreadyExists  another process holds it and has beaten since this one first asked
  absl::StatusOr<NameGrant> Claim(const NamedProcess& process, absl::Duration now);

  // A sign of life of the process.
  void Beat(const NamedProcess& process, absl::Duration now);

  // The process has ended.
  void Free(const NamedProcess& process);

  // The process held leases when the server last ended. It need not be alive.
  void Restore(const NamedProcess& process);

 private:
  struct Holder {
    std::string instance_key;
    NameGrant how = NameGrant::kFree;
    absl::Duration last_beat = -absl::InfiniteDuration();
    // When other processes first asked, by their instance keys.
    std::map<std::string, absl::Duration> newcomers;
  };

  const absl::Duration patience_;
  std::map<std::string, Holder> holders_;  // by name
};

}  // namespace hpo::server
