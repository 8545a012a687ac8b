// Tested by tests/worker/command/message_channel_test.cc.
#include "worker/channel/message_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo {

absl::StatusOr<int> ProtocolDescriptor() {
  const char* const named = std::getenv("HPO_TRAINER_FD");
  int fd = kTrainerProtocolFd;
  if (named != nullptr && (!absl::SimpleAtoi(named, &fd) || fd < 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("HPO_TRAINER_FD: expected a file descriptor, got '", named, "'"));
  }
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0) return fd;
  return absl::InvalidArgumentError(
      absl::StrCat(named == nullptr ? "" : "HPO_TRAINER_FD: ", "file descriptor ", fd,
                   ": expected the worker's end of the trainer protocol, got none"));
}

void MessageChannel::Send(const UpMessage& message) {
  const std::string line = EncodeUp(message) + "\n";
  absl::string_view rest = line;
  while (!ended_ && !rest.empty()) {
    const ssize_t sent = ::write(fd_, rest.data(), rest.size());
    if (sent >= 0) {
      rest.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      pollfd writable{.fd = fd_, .events = POLLOUT, .revents = 0};
      ::poll(&writable, 1, /*timeout=*/-1);
    } else if (errno != EINTR) {
      ended_ = true;
    }
  }
}

std::optional<StopRequest> MessageChannel::Poll() {
  while (!stop_.has_value()) {
    const absl::StatusOr<std::optional<std::string>> line = ReadLine(/*wait=*/false);
    if (line.ok() && !line->has_value()) {
      if (ended_) Stop("lease lost");
      break;
    }
    const absl::StatusOr<DownMessage> message = line.ok() ? DecodeDown(**line) : line.status();
    if (!message.ok()) {
      Send(LogMessage{.level = "error", .text = std::string(message.status().message())});
      ended_ = true;
    } else if (const auto* stop = std::get_if<StopRequest>(&*message)) {
      stop_ = *stop;
    } else if (std::holds_alternative<ShutdownRequest>(*message)) {
      shutdown_ = true;
      Stop("drain");
    } else {
      Send(LogMessage{.level = "error", .text = "expected no second job while one runs, got one"});
      ended_ = true;
    }
  }
  return stop_;
}

absl::StatusOr<TrainerJob> MessageChannel::NextJob() {
  stop_.reset();
  while (!shutdown_) {
    HPO_ASSIGN_OR_RETURN(const std::optional<std::string> line, ReadLine(/*wait=*/true));
    if (!line.has_value()) return absl::CancelledError("the supervisor closed the channel");
    HPO_ASSIGN_OR_RETURN(DownMessage message, DecodeDown(*line));
    if (auto* job = std::get_if<TrainerJob>(&message)) return std::move(*job);
    shutdown_ = std::holds_alternative<ShutdownRequest>(message);
  }
  return absl::CancelledError("shutdown");
}

void MessageChannel::Stop(const std::string& reason) {
  stop_ = StopRequest{.reason = reason, .checkpoint = false};
}

absl::StatusOr<std::optional<std::string>> MessageChannel::ReadLine(bool wait) {
  while (true) {
    const size_t newline = buffer_.find('\n');
    if (newline != std::string::npos) {
      std::string line = buffer_.substr(0, newline);
      buffer_.erase(0, newline + 1);
      if (!line.empty()) return line;
      continue;
    }
    if (!ended_ && buffer_.size() > kMaxLineBytes) {
      return absl::InvalidArgumentError(absl::StrCat("a line of the worker's: expected at most ",
                                                     kMaxLineBytes, " bytes, got ", buffer_.size(),
                                                     " without an end of it"));
    }
    if (ended_ || !ReadMore(wait)) return std::nullopt;
  }
}

bool MessageChannel::ReadMore(bool wait) {
  pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
  const int ready = ::poll(&readable, 1, wait ? -1 : 0);
  if (ready < 0 && errno == EINTR) return true;
  if (ready == 0) return false;
  std::array<char, 65536> chunk;
  const ssize_t size = ::read(fd_, chunk.data(), chunk.size());
  if (size > 0) {
    buffer_.append(chunk.data(), static_cast<size_t>(size));
    return true;
  }
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  ended_ = true;
  return false;
}

}  // namespace hpo
