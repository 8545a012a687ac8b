#include "server/trials/time_by_use.h"

namespace hpo::server {
namespace {

absl::Duration& PartOf(TimeUse use, TimeByUse& uses) {
  switch (use) {
    case TimeUse::kUseful:
      return uses.useful;
    case TimeUse::kOutOfMemory:
      return uses.out_of_memory;
    case TimeUse::kPruned:
      return uses.pruned;
    case TimeUse::kFailed:
      return uses.failed;
    case TimeUse::kCancelled:
      return uses.cancelled;
    case TimeUse::kPreempted:
      return uses.preempted;
    case TimeUse::kLost:
      break;
  }
  return uses.lost;
}

}  // namespace

TimeUse UseOf(const std::string& state, const std::string& outcome) {
  // A result counts, also of an attempt whose lease was given to another one.
  if (outcome == "out_of_memory") return TimeUse::kOutOfMemory;
  const bool is_lost =
      state == Name(AttemptState::kLost) || state == Name(AttemptState::kSuperseded);
  if (is_lost) return TimeUse::kLost;
  if (outcome == "completed") return TimeUse::kUseful;
  if (outcome == "stopped_by_pruner") return TimeUse::kPruned;
  if (outcome == "failed") return TimeUse::kFailed;
  if (outcome == "cancelled") return TimeUse::kCancelled;
  return TimeUse::kPreempted;
}

char LetterOf(TimeUse use) {
  constexpr char kLetters[] = "UOPFXEL";
  return kLetters[static_cast<size_t>(use)];
}

TimeByUse SumByUse(const std::vector<AttemptStore::EndedTime>& times, int64_t gpus) {
  TimeByUse uses;
  for (const AttemptStore::EndedTime& time : times) {
    PartOf(UseOf(time.state, time.outcome), uses) += time.duration * gpus;
  }
  return uses;
}

}  // namespace hpo::server
