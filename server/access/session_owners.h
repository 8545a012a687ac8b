// Which token each worker's session is of: whoever learns a session, or the key of a worker's
// process, can do nothing with it by another token. Thread-safe.
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/access/access_control.h"

namespace hpo::server {

// A process that registers.
struct RegisteringProcess {
  std::string worker;
  std::string instance_key;
  std::string predecessor;  // NamedProcess
};

// A token is known by its name: with a new secret it is the same one. Callers without one are of
// the server's machine and may do everything.
class SessionOwners {
 public:
  // Takes the predecessor out of `process` where that is of another token: the name has to be free
  // then, as for any other newcomer.
  //   PermissionDenied  the process has registered by another token
  absl::Status CheckRegister(const Caller& caller, RegisteringProcess& process) const;
  void Register(const Caller& caller, const RegisteringProcess& process,
                const std::string& session);

  // An unknown session is nobody's.
  //   PermissionDenied  the session is of another token
  absl::Status Check(const Caller& caller, const std::string& session) const;

 private:
  struct Owned {
    std::string token;  // empty: without one
    std::string instance_key;
    std::string session;
  };

  static bool IsOfAnother(const Caller& caller, const Owned& owned);

  mutable absl::Mutex mutex_;
  std::map<std::string, Owned> by_worker_ ABSL_GUARDED_BY(mutex_);        // the latest of each name
  std::map<std::string, std::string> worker_of_ ABSL_GUARDED_BY(mutex_);  // by session
};

}  // namespace hpo::server
