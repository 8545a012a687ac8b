// What people ask of the server itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/protocol/server_status.h"
#include "server/access/token_issuer.h"
#include "server/scheduler/trial_scheduler.h"

namespace hpo::server {

// Thread-safe.
class AdminApi {
 public:
  // `scheduler` outlives the api.
  explicit AdminApi(TrialScheduler& scheduler) : scheduler_(scheduler) {}

  ServerStatus GetServer() const;

  // Where the page is served.
  void SetPage(const std::string& url) {
    absl::MutexLock lock(&mutex_);
    page_ = url;
  }

  // Who makes tokens, for the calls below; it outlives them. Before any call.
  void SetIssuer(TokenIssuer* issuer) { issuer_ = issuer; }
  // Codes: TokenIssuer.
  //   FailedPrecondition  the server listens without TLS
  absl::StatusOr<TokenIssuer*> Issuer() const;

  struct BackUpEnd {
    int64_t size = 0;
    std::string sha256;
  };
  // A copy of the database as it is now, to `sink` in pieces of at most 1 MiB; the end after the
  // last. Other calls go on meanwhile.
  //   Cancelled    `sink` returned false
  //   Unavailable  no room for the copy beside the database, or it cannot be read
  absl::StatusOr<BackUpEnd> BackUp(const std::function<bool(absl::string_view)>& sink) const;

 private:
  TrialScheduler& scheduler_;
  mutable absl::Mutex mutex_;
  std::string page_ ABSL_GUARDED_BY(mutex_);
  std::atomic<TokenIssuer*> issuer_ = nullptr;  // null: there is no TLS
};

}  // namespace hpo::server
