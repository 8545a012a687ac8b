// The trainer's end of the protocol: JSON lines over a socket, both ways
// (common/protocol/trainer_protocol.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "worker/channel/event_sink.h"

namespace hpo {

// The worker's end of the protocol: HPO_TRAINER_FD, else 3. Programs that this one starts do not
// inherit it.
//   InvalidArgument  the variable is no descriptor, or nothing is open there; names what came
absl::StatusOr<int> ProtocolDescriptor();

// Not thread-safe.
class MessageChannel final : public EventSink, public StopSource {
 public:
  // Does not own `fd`.
  explicit MessageChannel(int fd) : fd_(fd) {}

  // Waits while the reader is behind. Once the reader is gone, messages are dropped.
  void Send(const UpMessage& message) override;

  // Reads what has arrived during an attempt. A shutdown counts as a request to stop with the
  // reason "drain"; the end of the channel as one with "lease lost"; what a trainer cannot be sent
  // now (a second job, something that is no message) as well, after a LogMessage that says so.
  std::optional<StopRequest> Poll() override;

  // Waits for the next job. Requests to stop that come between attempts are stale and ignored.
  //   Cancelled        a shutdown, or the end of the channel: the trainer should exit
  //   InvalidArgument  something that is no message of the protocol, or longer than kMaxLineBytes
  absl::StatusOr<TrainerJob> NextJob();

  static constexpr size_t kMaxLineBytes = size_t{4} << 20;

 private:
  // Takes one line out of what was read; reads more when there is none, waiting if `wait`.
  // nullopt: nothing there (yet); or the channel has ended, then `ended_` is true.
  //   InvalidArgument  it is longer than kMaxLineBytes; nothing that follows can be read
  absl::StatusOr<std::optional<std::string>> ReadLine(bool wait);
  bool ReadMore(bool wait);
  void Stop(const std::string& reason);

  int fd_;
  std::string buffer_;
  bool ended_ = false;
  bool shutdown_ = false;
  std::optional<StopRequest> stop_;
};

}  // namespace hpo
