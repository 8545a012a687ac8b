// Tested by tests/worker/agent/loop/agent_loop_test.cc.
#include "worker/agent/attempt/trainer_slot.h"

#include <poll.h>

#include <filesystem>
#include <utility>
#include <variant>

#include "absl/strings/str_replace.h"
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/device/host_memory.h"
#include "common/files/read_file.h"
#include "spdlog/spdlog.h"
#include "worker/agent/process/exit_outcome.h"
#include "worker/agent/process/poll_timeout.h"
#include "worker/agent/process/trainer_line.h"
#include "worker/agent/process/wait_for_machine.h"

namespace hpo::agent {
namespace {

constexpr absl::Duration kShutdownTimeout = absl::Seconds(5);
constexpr int kStartLogLines = 10;
// Of a program whose author may not mean it to be a trainer.
constexpr int kOwnLogLines = 3;
constexpr Limit kOwnLogLimit = {300, "bytes", "", "", ""};
constexpr int kFirstLaunches = 3;

constexpr char kHowToStart[] =
    "it has to speak the trainer protocol (docs/TRAINER_PROTOCOL.md), as its command has no "
    "placeholder. With one, {name} or {args}, it runs as an ordinary program.";

// The end of what the process printed, in one line; empty: nothing.
std::string LastOutput(const TrainerSlotOptions& options) {
  const int lines = options.is_own_program ? kOwnLogLines : kStartLogLines;
  const std::string tail =
      absl::StrReplaceAll(LogTail(options.log_path, /*from=*/0, lines), {{"\n", " | "}});
  return options.is_own_program ? Shortened(tail, kOwnLogLimit) : tail;
}

std::string WhyNoHello(const absl::StatusOr<UpMessage>& message, size_t num_lines) {
  if (!message.ok()) return absl::StrCat("got none: ", message.status().message());
  if (!std::holds_alternative<Hello>(*message)) return "got another message";
  return absl::StrCat("got ", num_lines, " lines");
}

}  // namespace

absl::Status TrainerSlot::Ensure() {
  if (process_ != nullptr && !process_->Poll()) return absl::OkStatus();
  Discard();
  HPO_RETURN_IF_ERROR(KilledHasEnded());
  std::error_code ignored;
  std::filesystem::remove(options_.log_path, ignored);
  capacity_.TrainerStarting();
  const SystemClock clock;
  const absl::Duration began = clock.Monotonic();
  HPO_ASSIGN_OR_RETURN(process_, launcher_.Launch(options_.log_path));
  attempts_ = 0;
  resident_ = {};
  if (const absl::Status greeted = AwaitHello(); !greeted.ok()) {
    Discard();
    return greeted;
  }
  start_time_ = clock.Monotonic() - began;
  capacity_.TrainerRuns(process_->pid());
  spdlog::debug("trainer {} (pid {}) is ready", hello_.program, process_->pid());
  return absl::OkStatus();
}

absl::Status TrainerSlot::EnsureFirst(const Backoff& pauses) {
  const auto ensure = [this] { return Ensure(); };
  Backoff pause = pauses;
  if (options_.is_own_program) {
    spdlog::info("waits for the trainer '{}' to begin: {}", launcher_.Describe(), kHowToStart);
  } else {
    spdlog::info("starts the trainer '{}'", launcher_.Describe());
  }
  absl::Status ready = WaitForMachine(stop_, pauses, ensure);
  for (int launches = 1; absl::IsInternal(ready) && launches < kFirstLaunches; ++launches) {
    spdlog::warn("{}; it is started again", std::string(ready.message()));
    stop_.WaitFor(pause.Next());
    ready = WaitForMachine(stop_, pauses, ensure);
  }
  return ready;
}

absl::Status TrainerSlot::NoTrainer(const std::string& reason, absl::StatusCode code) const {
  std::string message = absl::StrCat("trainer '", launcher_.Describe(), "' ", reason);
  const std::string tail = LastOutput(options_);
  if (options_.is_own_program) absl::StrAppend(&message, "; ", kHowToStart);
  if (!tail.empty()) {
    absl::StrAppend(&message, options_.is_own_program ? " Its" : "; its", " last output: ", tail);
  }
  return absl::Status(code, message);
}

absl::Status TrainerSlot::AwaitHello() {
  const SystemClock clock;
  const absl::Duration deadline = clock.Monotonic() + options_.hello_timeout;
  while (!stop_.raised()) {
    HPO_ASSIGN_OR_RETURN(const bool greeted, TakeHello());
    if (greeted) return absl::OkStatus();
    const absl::Duration left = deadline - clock.Monotonic();
    if (left <= absl::ZeroDuration()) {
      return NoTrainer(absl::StrCat("said nothing on file descriptor 3 for ",
                                    absl::FormatDuration(options_.hello_timeout),
                                    ": expected a hello line"));
    }
    pollfd events[] = {{.fd = process_->channel().fd(), .events = POLLIN, .revents = 0},
                       {.fd = stop_.fd(), .events = POLLIN, .revents = 0}};
    poll(events, 2, PollTimeout(left));
    if (events[1].revents != 0) stop_.Clear();
  }
  return absl::CancelledError("stopped while the trainer was starting");
}

// Whether the hello has come.
absl::StatusOr<bool> TrainerSlot::TakeHello() {
  const absl::StatusOr<ReceivedLines> received = process_->channel().ReadAvailable();
  if (!received.ok()) {
    return NoTrainer(absl::StrCat("broke the protocol: ", received.status().message()));
  }
  if (received->lines.empty() && !received->closed) return false;
  if (received->lines.empty()) {
    const std::optional<ProcessExit> exit = process_->WaitFor(options_.shutdown_grace);
    return NoTrainer(
        absl::StrCat(exit ? DescribeExit(*exit) : "closed file descriptor 3",
                     " before its hello line"),
        exit && exit->signal ? absl::StatusCode::kInternal : absl::StatusCode::kFailedPrecondition);
  }
  const absl::StatusOr<UpMessage> message = ReadTrainerLine(received->lines.front());
  if (!message.ok() || !std::holds_alternative<Hello>(*message) || received->lines.size() > 1) {
    return NoTrainer(absl::StrCat("began with '", received->lines.front().substr(0, 120),
                                  "': expected one hello line, ",
                                  WhyNoHello(message, received->lines.size())));
  }
  hello_ = std::get<Hello>(*message);
  if (hello_.version != kTrainerProtocolVersion) {
    return NoTrainer(absl::StrCat("speaks protocol version ", hello_.version, ": expected ",
                                  kTrainerProtocolVersion));
  }
  return true;
}

std::optional<Bytes> TrainerSlot::AttemptEnded(bool clean, Bytes tensors) {
  ++attempts_;
  std::optional<Bytes> growth;
  if (const auto resident = HostMemoryReader().ReadResident(process_->pid()); resident.ok()) {
    growth = resident_.AfterAttempt(*resident, tensors);
  }
  const bool sound = clean && !growth && hello_.Has("reuse");
  if (!sound || attempts_ >= options_.max_attempts) Shutdown();
  return growth;
}

void TrainerSlot::Discard() {
  if (process_ != nullptr && !process_->Kill()) undying_ = std::move(process_);
  process_.reset();
  capacity_.TrainerRuns(std::nullopt);
}

absl::Status TrainerSlot::KilledHasEnded() {
  if (undying_ != nullptr && undying_->Poll()) undying_.reset();
  if (undying_ == nullptr) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the last trainer (pid ", undying_->pid(),
                   ") has not ended since it was killed; if it does not soon, look at what it "
                   "waits for in the kernel, as a device driver that hangs"));
}

void TrainerSlot::Shutdown() {
  if (process_ == nullptr) return;
  const absl::Status asked =
      process_->channel().WriteLine(EncodeDown(ShutdownRequest{}), kShutdownTimeout);
  if (asked.ok()) {
    process_->WaitFor(options_.shutdown_grace);
  }
  Discard();
}

}  // namespace hpo::agent
