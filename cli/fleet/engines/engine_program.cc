#include "cli/fleet/engines/engine_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/status.h"
#include "common/command_line/temporary_folder.h"
#include "common/files/read_file.h"
#include "common/files/spawn.h"

namespace hpo::cli {
namespace {

// Finds a program in PATH; its exit status where there is none, or where it cannot be executed.
constexpr char kEnv[] = "/usr/bin/env";
constexpr int kNoProgram = 127;
constexpr int kNotExecutable = 126;
constexpr absl::Duration kSlow = absl::Seconds(3);
// What SIGTERM has to end a program, before SIGKILL.
constexpr absl::Duration kGrace = absl::Seconds(5);

absl::StatusOr<int> OpenNew(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return FileError(errno, path);
  return file;
}

// Whether the process has ended within `time`.
bool EndsWithin(int process, absl::Duration time) {
  pollfd end{.fd = process, .events = POLLIN, .revents = 0};
  const absl::Time deadline = absl::Now() + time;
  for (;;) {
    const bool is_bounded = time != absl::InfiniteDuration();
    const absl::Duration left = std::max(absl::ZeroDuration(), deadline - absl::Now());
    const int ready =
        poll(&end, 1, is_bounded ? static_cast<int>(absl::ToInt64Milliseconds(left)) : -1);
    if (ready >= 0 || errno != EINTR) return ready != 0;
  }
}

// Returns when the process has ended. False: it took longer than the call's patience, and was
// ended.
bool AwaitEnd(pid_t pid, const ProgramCall& call, const Notifies& notify) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return true;  // a kernel before 5.3: Reap waits
  const absl::Cleanup close_process = [process] { close(process); };
  const absl::Duration quick = std::min(kSlow, call.patience);
  if (EndsWithin(process, quick)) return true;
  if (!call.if_slow.empty()) notify(call.if_slow);
  if (EndsWithin(process, call.patience - quick)) return true;
  kill(pid, SIGTERM);
  if (!EndsWithin(process, kGrace)) kill(pid, SIGKILL);
  return false;
}

int Reap(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

absl::StatusOr<ProgramOutput> RunEngineProgram(const ProgramCall& call, const Notifies& notify) {
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<TemporaryFolder> folder,
                       TemporaryFolder::Create("hpo-fleet-"));
  const std::string output_path = folder->path() + "/output";
  const std::string errors_path = folder->path() + "/errors";
  HPO_ASSIGN_OR_RETURN(const int output, OpenNew(output_path));
  const absl::Cleanup close_output = [output] { close(output); };
  HPO_ASSIGN_OR_RETURN(const int errors, OpenNew(errors_path));
  const absl::Cleanup close_errors = [errors] { close(errors); };
  SpawnRequest request{
      .argv = {kEnv}, .output = output, .errors = errors, .signal_of_parents_death = SIGTERM};
  request.argv.insert(request.argv.end(), call.words.begin(), call.words.end());
  HPO_ASSIGN_OR_RETURN(const pid_t pid, Spawn(request));
  const bool has_ended = AwaitEnd(pid, call, notify);
  ProgramOutput ended{.status = Reap(pid)};
  if (!has_ended) {
    return absl::DeadlineExceededError(absl::StrCat(call.words[0], " has not answered within ",
                                                    absl::FormatDuration(call.patience)));
  }
  HPO_ASSIGN_OR_RETURN(ended.output, ReadFile(output_path));
  HPO_ASSIGN_OR_RETURN(ended.errors, ReadFile(errors_path));
  const bool was_not_run = (ended.status == kNoProgram || ended.status == kNotExecutable) &&
                           absl::StartsWith(ended.errors, absl::StrCat(kEnv, ": "));
  if (was_not_run)
    return absl::NotFoundError(absl::StrCat("no program ", call.words[0], " in PATH"));
  return ended;
}

std::string ComplaintOf(const std::string& program, const ProgramOutput& ended) {
  for (const std::string* text : {&ended.errors, &ended.output}) {
    absl::string_view last;
    for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipWhitespace())) {
      last = line;
    }
    absl::ConsumePrefix(&last, absl::StrCat(program, ": "));
    absl::ConsumePrefix(&last, "error: ");
    if (!last.empty()) return std::string(last);
  }
  return absl::StrCat("it ended with status ", ended.status);
}

}  // namespace hpo::cli
