// The one trainer of a worker: started when it is needed, kept warm between attempts while it is
// sound, replaced when it is not. One thread, the one that the trainer's life is tied to
// (trainer_process.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/trainer_protocol.h"
#include "worker/agent/device/capacity.h"
#include "worker/agent/process/backoff.h"
#include "worker/agent/process/resident_watch.h"
#include "worker/agent/process/stop_signal.h"
#include "worker/agent/process/trainer_launcher.h"

namespace hpo::agent {

struct TrainerSlotOptions {
  std::string log_path;  // output of the process; a new one for each
  // The program is somebody's own and has no placeholders: its author may not know that it has to
  // speak the trainer protocol.
  bool is_own_program = false;
  absl::Duration hello_timeout = absl::Seconds(120);  // loading torch from a cold disk is slow
  absl::Duration shutdown_grace = absl::Seconds(10);
  // Whatever the trainer says of itself, a process does not run more than this.
  int max_attempts = 20;
};

class TrainerSlot {
 public:
  TrainerSlot(TrainerLauncher& launcher, DeviceCapacity& capacity, StopSignal& stop,
              TrainerSlotOptions options)
      : launcher_(launcher), capacity_(capacity), stop_(stop), options_(std::move(options)) {}

  // A trainer that has said hello and runs nothing: the warm one, or a new one.
  //   FailedPrecondition  what was started is no trainer: it ended, was silent for the hello
  //                       time-out, or said something else; says which, with its last output
  //   Internal            a signal ended it before that; it may be another one's victim
  //   Unavailable         the machine lacks what a process needs, and may have it again; or
  //                       KilledHasEnded()
  //   Cancelled           the stop signal was raised meanwhile
  //   else                see TrainerProcess::Start
  absl::Status Ensure();
  // The same, up to three times while it is Internal, which says nothing of the program, and as
  // long as it takes while it is Unavailable (wait_for_machine.h). `pauses` is between them.
  absl::Status EnsureFirst(const Backoff& pauses);

  // Of the trainer that Ensure() last gave.
  TrainerProcess& process() { return *process_; }
  const Hello& hello() const { return hello_; }
  const TrainerLauncher& launcher() const { return launcher_; }
  // What the last one took from its launch to its hello.
  absl::Duration start_time() const { return start_time_; }

  // An attempt ended and the process is still there. Keeps it warm, or ends it: when it is not
  // `clean`, cannot be reused, has run max_attempts, or its resident bytes grow from attempt to
  // attempt (resident_watch.h); then by how much. `tensors`: see there.
  std::optional<Bytes> AttemptEnded(bool clean, Bytes tensors);

  // Kills it, where there is one. What does not end is kept until it has, and holds up Ensure().
  void Discard();

  // OK: no killed trainer is there any more.
  //   Unavailable  one is: it may hold the device's memory, or hang in the device's driver
  absl::Status KilledHasEnded();

  // Asks it to end, waits for the grace time, then kills.
  void Shutdown();

 private:
  absl::Status AwaitHello();
  // Of a program that is none; says why, with its last output.
  absl::Status NoTrainer(const std::string& reason,
                         absl::StatusCode code = absl::StatusCode::kFailedPrecondition) const;
  absl::StatusOr<bool> TakeHello();

  TrainerLauncher& launcher_;
  DeviceCapacity& capacity_;
  StopSignal& stop_;
  TrainerSlotOptions options_;
  std::unique_ptr<TrainerProcess> process_;
  std::unique_ptr<TrainerProcess> undying_;
  Hello hello_;
  absl::Duration start_time_;
  ResidentWatch resident_;
  int attempts_ = 0;
};

}  // namespace hpo::agent
