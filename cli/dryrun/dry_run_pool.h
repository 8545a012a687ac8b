// Dry runs that go on at the same time: child processes whose output is kept.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hpo::cli {

struct EndedRun {
  size_t id = 0;
  int status = 0;      // exit status; 128 + signal where one ended it
  std::string output;  // standard output and errors
  absl::Duration duration;
};

// One owner thread.
class DryRunPool {
 public:
  DryRunPool() = default;
  // Ends what still runs: SIGTERM, by which a dry run ends the program that it runs, and SIGKILL
  // after some seconds.
  ~DryRunPool();
  DryRunPool(const DryRunPool&) = delete;
  DryRunPool& operator=(const DryRunPool&) = delete;

  // Runs `words`: a program, which is searched for in PATH, and its arguments. `output` is the file
  // for its output.
  //   codes of Spawn (common/files/spawn.h) and FileError (common/files/read_file.h)
  absl::Status Start(size_t id, const std::vector<std::string>& words,
                     const std::map<std::string, std::string>& environment,
                     const std::string& output);

  size_t num_running() const { return running_.size(); }

  // One that has ended. nullopt: none has within `timeout`, or `events` has something to read (-1:
  // nothing is awaited there).
  std::optional<EndedRun> Wait(int events, absl::Duration timeout);

 private:
  struct Running {
    size_t id = 0;
    pid_t pid = 0;
    int fd = -1;  // readable once it has ended
    std::string output;
    absl::Time started;
  };

  std::vector<Running> running_;
};

}  // namespace hpo::cli
