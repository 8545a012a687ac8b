// Lines over a stream socket: the framing of the trainer protocol. Owns the descriptor and makes it
// non-blocking. One thread at a time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/agent/process/unique_fd.h"

namespace hpo::agent {

// What a call to ReadAvailable found, in order.
struct ReceivedLines {
  std::vector<std::string> lines;  // without the newline; empty lines are left out
  bool closed = false;             // the other side closed; no more will come
  std::string torn;                // what came after the last newline, once closed
};

class LineChannel {
 public:
  // A line longer than `max_line_bytes` breaks the protocol: it would otherwise fill the memory.
  static constexpr size_t kDefaultMaxLineBytes = 4 << 20;

  explicit LineChannel(UniqueFd socket, size_t max_line_bytes = kDefaultMaxLineBytes);

  // For poll(): POLLIN when ReadAvailable has something to do.
  int fd() const { return socket_.get(); }

  // Takes what has arrived; never blocks. After `closed` every call returns closed again.
  //   ResourceExhausted  a line longer than the limit; the channel is closed from then on
  absl::StatusOr<ReceivedLines> ReadAvailable();

  // Writes `line` and a newline. Waits at most `timeout` for a reader that does not keep up.
  //   InvalidArgument   `line` contains a newline
  //   Unavailable       the other side is gone
  //   DeadlineExceeded  the reader took too little; part of the line may have been written
  absl::Status WriteLine(absl::string_view line, absl::Duration timeout);

 private:
  absl::Status TakeLines(absl::string_view data, ReceivedLines& received);

  UniqueFd socket_;
  size_t max_line_bytes_;
  std::string partial_;
  bool closed_ = false;
};

}  // namespace hpo::agent
