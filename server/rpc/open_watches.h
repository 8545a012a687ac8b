// How many watches each client has open. Thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/limits.h"

namespace hpo::server {

class OpenWatches {
 public:
  // One watch; closed when it is destroyed. The OpenWatches outlives it.
  class Watch {
   public:
    Watch(OpenWatches* owner, std::string client) : owner_(owner), client_(std::move(client)) {}
    Watch(Watch&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), client_(std::move(other.client_)) {}
    Watch& operator=(Watch&&) = delete;
    ~Watch() {
      if (owner_ != nullptr) owner_->Close(client_);
    }

   private:
    OpenWatches* owner_;
    std::string client_;
  };

  // `peer`: an address, "ipv4:127.0.0.1:40182" or "10.0.0.7:40182" (Caller::from): the port, which
  // is new with each connection, does not count.
  //   ResourceExhausted  the client has kWatchLimit open
  absl::StatusOr<Watch> Open(absl::string_view peer) {
    const std::string client(peer.substr(0, peer.rfind(':')));
    absl::MutexLock lock(&mutex_);
    int64_t& open = open_[client];
    if (open >= kWatchLimit.most) {
      return absl::ResourceExhaustedError(absl::StrCat("watches: expected at most ",
                                                       kWatchLimit.most, " open ones of ", client,
                                                       ", got one more"));
    }
    ++open;
    return Watch(this, client);
  }

 private:
  void Close(const std::string& client) {
    absl::MutexLock lock(&mutex_);
    const auto found = open_.find(client);
    if (--found->second == 0) open_.erase(found);
  }

  absl::Mutex mutex_;
  std::map<std::string, int64_t> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
