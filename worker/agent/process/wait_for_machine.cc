#include "worker/agent/process/wait_for_machine.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "spdlog/spdlog.h"

namespace hpo::agent {

bool MayPass(const absl::Status& error) {
  return absl::IsUnavailable(error) || absl::IsResourceExhausted(error);
}

absl::Status WaitForMachine(StopSignal& stop, Backoff pauses,
                            const std::function<absl::Status()>& act) {
  constexpr absl::Duration kSayAgain = absl::Minutes(1);
  const SystemClock clock;
  absl::Duration say_at = -absl::InfiniteDuration();
  absl::Status done = act();
  for (; absl::IsUnavailable(done); done = act()) {
    if (clock.Monotonic() >= say_at) {
      spdlog::warn("waiting for this machine: {}", std::string(done.message()));
      say_at = clock.Monotonic() + kSayAgain;
    }
    if (stop.WaitFor(pauses.Next()) || stop.raised()) {
      return absl::CancelledError(
          absl::StrCat("told to stop while waiting for this machine: ", done.message()));
    }
  }
  return done;
}

}  // namespace hpo::agent
