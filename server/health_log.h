// Says what keeps the server from working: when it begins, once a minute while it lasts, and when
// it is over.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace hpo::server {

// Not thread-safe.
class HealthLog {
 public:
  // The line to log, if any. `trouble`: what there is now, empty for nothing; `now`: monotonic.
  std::optional<std::string> Look(const std::string& trouble, absl::Duration now);

 private:
  bool troubled_ = false;
  absl::Duration since_;
  absl::Duration said_at_;
};

}  // namespace hpo::server
