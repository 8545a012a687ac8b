// A process that may not open more files.
#pragma once

#include <sys/resource.h>

namespace hpo {

// While it lives, no file of this process gets a descriptor of `limit` or above.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t limit = 3) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{limit, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace hpo
