// An attempt's part of what its trainer prints: a warm trainer's log file goes on from attempt to
// attempt. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hpo::agent {

class AttemptLog {
 public:
  // How often the server is told what is new.
  static constexpr absl::Duration kTellEach = absl::Seconds(10);

  // What `path`, the trainer's log file, gets from now on.
  explicit AttemptLog(std::string path);

  // The last lines for people (Attempt::log_tail): as a terminal would show them at last. Empty
  // where there are none, or the file cannot be read.
  std::string Tail() const;

  // Tail(), where the file has grown since the last call and that call was kTellEach ago. `now`:
  // monotonic.
  std::optional<std::string> News(absl::Duration now);
  // When to ask for news again; monotonic.
  absl::Duration next_news() const { return next_news_; }

  // The last `max_lines` lines, as Tail() has them (LogTail in read_file.h).
  std::string LastLines(int max_lines) const;

  // Copies the attempt's part to trainer.log in `folder`: all of it, or no file.
  //   see FileError  the disk is full, or one of both cannot be opened
  absl::Status CopyTo(const std::string& folder) const;

 private:
  const std::string path_;
  const int64_t start_;
  int64_t told_size_;
  absl::Duration next_news_ = absl::ZeroDuration();
};

}  // namespace hpo::agent
