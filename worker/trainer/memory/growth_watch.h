// Notices memory that does not come back: live bytes that grow from one quiet point of a training
// to the next. A quiet point is where all that is temporary has been freed: after a step, an
// evaluation, a save. Free of torch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/bytes.h"

namespace hpo::trainer {

struct Growth {
  std::string stage;  // what ran when it grew: "training step", "evaluation", ...
  Bytes bytes;        // in total
  int64_t times = 0;
  bool operator==(const Growth&) const = default;
};

// One trial's. Not thread-safe.
class GrowthWatch {
 public:
  explicit GrowthWatch(Bytes live) : live_(live) {}

  // `stage` has just ended, with `live` bytes. The stage's growth, once, when it has risen
  // kRises times since live bytes last fell, by more than kTolerance in sum. A single rise, however
  // large, is a library's first use; a rise that a later stage undoes is a cache.
  std::optional<Growth> After(const std::string& stage, Bytes live);

  static constexpr int64_t kRises = 4;
  static constexpr Bytes kTolerance = KiB(64);

 private:
  struct Run {
    int64_t rises = 0;
    Bytes grown;
    bool told = false;
  };

  Bytes live_;
  std::map<std::string, Run> runs_;  // by stage
};

}  // namespace hpo::trainer
