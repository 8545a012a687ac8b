// A trainer as a child process: started, watched, and always killed.
//
// The child leads its own session and process group, so that a kill reaches what it started; what
// has left the group (a launcher's processes) is reached by the command's mark.
// It dies with its parent (parent-death signal), also when the parent is killed by SIGKILL. Linux
// ties that signal to the *thread* that called Start(): call it from one that lives as long as the
// trainer should. One thread at a time.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/agent/process/line_channel.h"
#include "worker/agent/process/unique_fd.h"

namespace hpo::agent {

struct TrainerCommand {
  // Program (a path, never searched for) and its arguments.
  std::vector<std::string> argv;
  // Put over the agent's own environment, of which a trainer inherits everything but our tokens.
  std::map<std::string, std::string> environment;
  // Receives stdout and stderr; created or appended to.
  std::string log_path;
  // Of this process and what it starts (stray_processes.h); empty: none. No other one that lives
  // has it.
  std::string mark;
  // What it gets when the thread that called Start() has ended.
  int signal_of_parents_death = SIGKILL;
};

// How the process ended: one of the two is set.
struct ProcessExit {
  std::optional<int> code;
  std::optional<int> signal;
  bool operator==(const ProcessExit&) const = default;
};

class TrainerProcess {
 public:
  // Starts the program with one end of a socketpair as file descriptor 3 and no other inherited
  // descriptor but its log (1, 2) and /dev/null (0).
  //   NotFound           there is no such program
  //   PermissionDenied   it cannot be executed
  //   InvalidArgument    argv is empty
  //   Internal           no process, socket or log file could be made
  //   Unavailable        the same, and it may pass (MayPass in read_file.h)
  static absl::StatusOr<std::unique_ptr<TrainerProcess>> Start(const TrainerCommand& command);

  // As Kill(); what does not end then is not reaped while this process lives.
  ~TrainerProcess();

  TrainerProcess(const TrainerProcess&) = delete;
  TrainerProcess& operator=(const TrainerProcess&) = delete;

  pid_t pid() const { return pid_; }
  LineChannel& channel() { return channel_; }
  const std::string& log_path() const { return log_path_; }

  // A pidfd for poll(): POLLIN once the process has ended.
  int exit_fd() const { return exit_fd_.get(); }

  // How it ended, or nullopt while it runs; what it has left running is killed then, as Kill()
  // does.
  std::optional<ProcessExit> Poll();

  // As Poll(), waiting up to `timeout`.
  std::optional<ProcessExit> WaitFor(absl::Duration timeout);

  // SIGKILL to the whole group, to its descendants (common/device/process_tree.h) and to everything
  // with its mark; where it has ended by itself, to what is left of the group and has the mark.
  // Waits until they are gone, at most kKillPatience (stray_processes.h) each. nullopt, and the log
  // says so: the process waits in the kernel, as for a driver that hangs, and still has what it
  // had. Poll() reaps it once it has ended; another Kill() does not wait.
  std::optional<ProcessExit> Kill();

 private:
  TrainerProcess(pid_t pid, UniqueFd exit_fd, UniqueFd socket, const TrainerCommand& command);
  bool HasEnded() const;
  void AwaitEnd(absl::Duration timeout) const;

  pid_t pid_;
  UniqueFd exit_fd_;
  LineChannel channel_;
  std::string log_path_;
  std::string mark_;
  std::optional<ProcessExit> exit_;
  bool killed_ = false;
};

}  // namespace hpo::agent
