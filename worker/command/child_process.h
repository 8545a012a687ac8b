// One run of a shell command: its output as lines, its host memory, its end, and the end of all
// that it has started. One thread; one run at a time in a process, which starts nothing else
// meanwhile.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"

namespace hpo::command {

class ChildProcess {
 public:
  // Runs `command` by /bin/sh in a process group of its own, with `environment` put over ours,
  // output and errors into one pipe. It is killed when the thread that calls ends.
  //   Unavailable  no process or pipe can be had
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const std::string& command, const std::map<std::string, std::string>& environment);

  // As End().
  ~ChildProcess();

  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Takes a line without its newline; `overwritten`: a carriage return ended it.
  using OnLine = std::function<void(absl::string_view line, bool overwritten)>;

  // Gives what was printed to `on_line`, line by line; also copies it to standard output. False:
  // nothing more will come. Waits for output at most `timeout`, and where none can come any more
  // that long.
  bool ReadLines(absl::Duration timeout, const OnLine& on_line);

  // Whether the command itself has ended; its children may live, and print.
  bool HasEnded();

  // Sends the signal to the whole group.
  void Signal(int signal);

  // Resident host memory of its processes now, of those too that have left the group.
  Bytes Resident() const;

  // Kills whatever is left of it and of what it has started (common/device/process_tree.h), and
  // waits until all are gone. How the command ended, as waitpid() tells it.
  int End();

  // After End: the most that one of its processes held.
  Bytes largest_resident() const { return largest_resident_; }

 private:
  ChildProcess(pid_t pid, int output) : pid_(pid), output_(output) {}
  void TakeLines(absl::string_view text, const OnLine& on_line);

  const pid_t pid_;
  const int output_;
  std::string partial_;
  bool closed_ = false;  // the program's end of the pipe
  bool reaped_ = false;
  int status_ = 0;
  Bytes largest_resident_;
};

// A SIGTERM that did not come by way of the worker. Slurm, and who ends a whole tree of processes,
// sends it to every process of a job at once: to the worker, to this trainer and to its program.
// From here on it is only noted. Programs that are started do not inherit that.
void NoteTermination();

// Whether a SIGTERM has come since.
bool TerminationSeen();

}  // namespace hpo::command
