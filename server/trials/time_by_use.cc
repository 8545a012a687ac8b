#include "server/trials/time_by_use.h"

namespace hpo::server {
namespace {

absl::Duration& UseOf(const AttemptStore::EndedTime& time, TimeByUse& uses) {
  // A result counts, also of an attempt whose lease was given to another one.
  if (time.outcome == "out_of_memory") return uses.out_of_memory;
  if (time.state == Name(AttemptState::kLost) || time.state == Name(AttemptState::kSuperseded)) {
    return uses.lost;
  }
  if (time.outcome == "completed") return uses.useful;
  if (time.outcome == "stopped_by_pruner") return uses.pruned;
  if (time.outcome == "failed") return uses.failed;
  if (time.outcome == "cancelled") return uses.cancelled;
  return uses.preempted;
}

}  // namespace

TimeByUse SumByUse(const std::vector<AttemptStore::EndedTime>& times) {
  TimeByUse uses;
  for (const AttemptStore::EndedTime& time : times) UseOf(time, uses) += time.duration;
  return uses;
}

}  // namespace hpo::server
