// Lets one thread wake another that waits in poll(). Thread-safe.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "common/base/status.h"
#include "worker/agent/process/unique_fd.h"

namespace hpo::agent {

class WakeUp {
 public:
  WakeUp() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { HPO_CHECK(fd_.ok()); }

  // Makes fd() readable until Clear().
  void Notify() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(fd_.get(), &one, sizeof one);
  }

  void Clear() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = read(fd_.get(), &count, sizeof count);
  }

  // For poll(): POLLIN when notified.
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

}  // namespace hpo::agent
