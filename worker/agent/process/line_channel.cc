#include "worker/agent/process/line_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "worker/agent/process/poll_timeout.h"

namespace hpo::agent {
namespace {

absl::Status Gone(absl::string_view action) {
  return absl::UnavailableError(absl::StrCat("trainer channel: ", action, ": ", strerror(errno)));
}

}  // namespace

LineChannel::LineChannel(UniqueFd socket, size_t max_line_bytes)
    : socket_(std::move(socket)), max_line_bytes_(max_line_bytes) {
  fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
}

absl::StatusOr<ReceivedLines> LineChannel::ReadAvailable() {
  ReceivedLines received;
  char buffer[16 << 10];
  while (!closed_) {
    const ssize_t count = recv(socket_.get(), buffer, sizeof buffer, 0);
    if (count > 0) {
      HPO_RETURN_IF_ERROR(
          TakeLines(absl::string_view(buffer, static_cast<size_t>(count)), received));
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return received;
    // An end, or a reset by a trainer that died with unread lines: both mean that it is gone.
    closed_ = true;
    received.torn = std::exchange(partial_, {});
  }
  received.closed = true;
  return received;
}

absl::Status LineChannel::TakeLines(absl::string_view data, ReceivedLines& received) {
  while (!data.empty()) {
    const size_t newline = data.find('\n');
    const absl::string_view piece = data.substr(0, newline);
    if (partial_.size() + piece.size() > max_line_bytes_) {
      closed_ = true;
      return absl::ResourceExhaustedError(
          absl::StrCat("trainer channel: expected lines of at most ", max_line_bytes_,
                       " bytes, got a longer one that starts with '",
                       (partial_ + std::string(piece)).substr(0, 80), "'"));
    }
    partial_.append(piece.data(), piece.size());
    if (newline == absl::string_view::npos) return absl::OkStatus();
    if (!partial_.empty()) {
      received.lines.push_back(std::exchange(partial_, {}));
    }
    data.remove_prefix(newline + 1);
  }
  return absl::OkStatus();
}

absl::Status LineChannel::WriteLine(absl::string_view line, absl::Duration timeout) {
  if (absl::StrContains(line, '\n')) {
    return absl::InvalidArgumentError("trainer channel: expected one line, got several");
  }
  const std::string framed = absl::StrCat(line, "\n");
  const SystemClock clock;
  const absl::Duration deadline = clock.Monotonic() + timeout;
  for (size_t written = 0; written < framed.size();) {
    const ssize_t count =
        send(socket_.get(), framed.data() + written, framed.size() - written, MSG_NOSIGNAL);
    if (count >= 0) {
      written += static_cast<size_t>(count);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Gone("write");
    const absl::Duration left = deadline - clock.Monotonic();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("trainer channel: the trainer read ", written,
                                                      " of ", framed.size(), " bytes within ",
                                                      absl::FormatDuration(timeout)));
    }
    pollfd writable{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    poll(&writable, 1, PollTimeout(left));
  }
  return absl::OkStatus();
}

}  // namespace hpo::agent
