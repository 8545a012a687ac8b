// A scheduler over a database file of its own and a clock that only its owner moves, which can be
// restarted or killed; after each, what it rebuilt is compared with what it had in memory.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/scheduler/trial_scheduler.h"
#include "tests/fakes/simulated_clock.h"
#include "tests/fakes/temporary_database.h"

namespace hpo {

class SimulatedServer {
 public:
  using TryAgain = std::function<bool(const absl::Status&)>;
  // Where the file cannot be opened for now, `try_again` says whether to try once more.
  static absl::StatusOr<std::unique_ptr<SimulatedServer>> Start(const server::LeasePolicy& lease,
                                                                const TryAgain& try_again = {});

  server::TrialScheduler& scheduler() { return *scheduler_; }
  SimulatedClock& clock() { return clock_; }

  // Ends the scheduler in order and starts another one on its file.
  //   Internal  its memory differs from what the rows say (study_image.h)
  absl::Status Restart();
  // Starts another one on a copy of the files as they lie, write-ahead log included: what kill -9
  // leaves. The same codes.
  absl::Status Crash();

 private:
  explicit SimulatedServer(const server::LeasePolicy& lease) : lease_(lease) {}

  absl::Status Open();

  const server::LeasePolicy lease_;
  SimulatedClock clock_;
  std::unique_ptr<TemporaryDatabase> database_ = std::make_unique<TemporaryDatabase>();
  std::unique_ptr<server::TrialScheduler> scheduler_;
};

}  // namespace hpo
