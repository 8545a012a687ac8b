// Tested by tests/integration/test_run.py.
#include "cli/client/local_service.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "cli/client/interrupts.h"
#include "cli/client/terminal.h"
#include "common/base/status.h"
#include "common/command_line/exit_status.h"
#include "common/files/read_file.h"
#include "common/files/spawn.h"

namespace hpo::cli {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kServerStart = absl::Seconds(60);
constexpr absl::Duration kPollServer = absl::Milliseconds(50);
constexpr absl::Duration kLastQuestion = absl::Seconds(5);
constexpr absl::Duration kEndOfAnother = absl::Seconds(5);
constexpr int kQuotedLines = 12;
constexpr int kErrorColumns = 400;  // width at which an error from a log is cut
constexpr char kAnyPort[] = "127.0.0.1:0";
constexpr size_t kSocketPathLimit = sizeof(sockaddr_un::sun_path);

uintmax_t SizeOf(const std::string& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

// Returns the error in a line of a log, without the line's time.
std::string ErrorOf(const std::string& line) {
  const std::string level = " error ";
  const size_t at = line.find(level);
  return at == std::string::npos ? line : line.substr(at + level.size());
}

// Returns the last error in a log from byte `from` on, or else its last line. If the log has more
// than that, its path follows.
std::string LastErrorOf(const std::string& log, uintmax_t from) {
  const std::string tail = LogTail(log, static_cast<int64_t>(from), kQuotedLines);
  const std::vector<std::string> lines = absl::StrSplit(tail, '\n');
  std::string error = lines.back();
  for (const std::string& line : lines) {
    if (line != ErrorOf(line)) error = line;
  }
  error = ErrorOf(error);
  const std::string shown = FitTo(error, kErrorColumns);
  return lines.size() == 1 && shown == error ? shown : absl::StrCat(shown, "; its log: ", log);
}

// The process that has the database, of a server's error; nullopt: it names none.
std::optional<pid_t> HolderIn(absl::string_view message) {
  constexpr absl::string_view kInUse = " is in use by pid ";
  const size_t at = message.find(kInUse);
  if (at == absl::string_view::npos) return std::nullopt;
  const absl::string_view rest = message.substr(at + kInUse.size());
  pid_t pid = 0;
  const bool is_number =
      absl::SimpleAtoi(rest.substr(0, rest.find_first_not_of("0123456789")), &pid);
  return is_number ? std::optional(pid) : std::nullopt;
}

// Whether a process has ended within `timeout`.
bool AwaitEnd(pid_t pid, absl::Duration timeout) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return true;
  pollfd waited{.fd = process, .events = POLLIN, .revents = 0};
  const bool ended = poll(&waited, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) == 1;
  close(process);
  return ended;
}

std::string DescribeEnd(int status) {
  if (WIFSIGNALED(status)) return absl::StrCat("was killed by signal ", WTERMSIG(status));
  return absl::StrCat("ended with status ", WEXITSTATUS(status));
}

}  // namespace

absl::StatusOr<LocalService::Process> LocalService::StartProgram(
    const std::vector<std::string>& argv, const std::string& log) {
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (output < 0) return FileError(errno, log);
  // SIGTERM: also where this command is killed, the running trial is given back.
  const absl::StatusOr<WatchedProcess> process =
      SpawnWatched({.argv = argv, .output = output, .signal_of_parents_death = SIGTERM});
  close(output);
  HPO_RETURN_IF_ERROR(process.status());
  return Process{.pid = process->pid, .fd = process->fd};
}

// Waits for a process' end, at most so long, or until `events` has something to read (-1: none).
// Its status as waitpid() tells it, once it has ended.
std::optional<int> LocalService::WaitForProcess(Process& process, int events,
                                                absl::Duration timeout) {
  std::array<pollfd, 2> waited = {{{.fd = process.fd, .events = POLLIN, .revents = 0},
                                   {.fd = events, .events = POLLIN, .revents = 0}}};
  const bool forever = timeout == absl::InfiniteDuration();
  poll(waited.data(), waited.size(),
       forever ? -1 : static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  int status = 0;
  if (waitpid(process.pid, &status, WNOHANG) != process.pid) return std::nullopt;
  process.pid = 0;
  return status;
}

void LocalService::Tell(const Process& process, int signal) {
  syscall(SYS_pidfd_send_signal, process.fd, signal, nullptr, 0);
}

absl::StatusOr<std::unique_ptr<LocalService>> LocalService::Start(
    const LocalServiceOptions& options) {
  std::unique_ptr<LocalService> service(new LocalService(options));
  absl::Status started = service->StartServer();
  if (const std::optional<pid_t> holder = HolderIn(started.message())) {
    // The server of a command that was killed just now takes a moment to end.
    if (AwaitEnd(*holder, kEndOfAnother)) {
      close(std::exchange(service->server_.fd, -1));
      started = service->StartServer();
    }
  }
  HPO_RETURN_IF_ERROR(started);
  return service;
}

absl::Status LocalService::StartServer() {
  std::error_code error;
  fs::create_directories(options_.folder, error);
  if (error) return FileError(error.value(), options_.folder);
  const std::string log = options_.folder + "/server.log";
  // Another command's server may run on the folder: its address stays.
  const std::string address_file = absl::StrCat(options_.folder, "/address.", getpid());
  const absl::Cleanup remove_file = [&address_file] {
    std::error_code ignored;
    fs::remove(address_file, ignored);
  };
  fs::remove(address_file, error);
  const uintmax_t log_begin = SizeOf(log);
  std::vector<std::string> argv = {options_.programs + "/hpo-server", "--address-file",
                                   address_file};
  if (options_.snapshot_of.empty()) {
    argv.insert(argv.end(), {"--db", options_.folder + "/hpo.db", "--listen", kAnyPort});
  } else {
    const std::string socket = options_.folder + "/socket";
    argv.insert(argv.end(), {"--snapshot-of", options_.snapshot_of, "--listen",
                             socket.size() < kSocketPathLimit ? "unix:" + socket : kAnyPort});
  }
  argv.insert(argv.end(), options_.server_arguments.begin(), options_.server_arguments.end());
  HPO_ASSIGN_OR_RETURN(server_, StartProgram(argv, log));
  for (const absl::Time end = absl::Now() + kServerStart; absl::Now() < end;) {
    if (WaitForProcess(server_, /*events=*/-1, kPollServer)) {
      return absl::FailedPreconditionError(LastErrorOf(log, log_begin));
    }
    const absl::StatusOr<std::string> address = ReadFile(address_file);
    if (!address.ok()) continue;
    address_ = std::string(absl::StripAsciiWhitespace(*address));
    fs::rename(address_file, options_.folder + "/address", error);
    return absl::OkStatus();
  }
  return absl::DeadlineExceededError(absl::StrCat("hpo-server gave no address within ",
                                                  absl::FormatDuration(kServerStart),
                                                  "; its log: ", log));
}

absl::Status LocalService::StartWorker(std::function<void(int)> on_signal) {
  on_signal_ = std::move(on_signal);
  std::vector<std::string> argv = {options_.programs + "/hpo-worker",
                                   "--server",
                                   address_,
                                   "--study",
                                   options_.study,
                                   "--state-dir",
                                   options_.folder + "/worker"};
  argv.insert(argv.end(), options_.worker_arguments.begin(), options_.worker_arguments.end());
  HPO_RETURN_IF_ERROR(CountInterrupts());
  const std::string log = options_.folder + "/worker.log";
  worker_log_begin_ = SizeOf(log);
  HPO_ASSIGN_OR_RETURN(worker_, StartProgram(argv, log));
  watcher_ = std::thread([this] { Watch(); });
  return absl::OkStatus();
}

LocalService::~LocalService() {
  if (watcher_.joinable()) {
    Tell(worker_, SIGTERM);
    watcher_.join();
  }
  if (server_.pid != 0) {
    Tell(server_, SIGTERM);
    WaitForProcess(server_, /*events=*/-1, absl::InfiniteDuration());
  }
  if (worker_.fd >= 0) close(worker_.fd);
  if (server_.fd >= 0) close(server_.fd);
}

LocalService::Failure LocalService::WorkerFailure() const {
  const std::lock_guard lock(mutex_);
  return worker_failure_;
}

std::string LocalService::LastWordOfWorker() const {
  return LogTail(options_.folder + "/worker.log", static_cast<int64_t>(worker_log_begin_), 1);
}

std::string LocalService::WorkerLog() const {
  const absl::StatusOr<std::string> log = ReadFile(options_.folder + "/worker.log");
  if (!log.ok() || log->size() < worker_log_begin_) return "";
  return log->substr(worker_log_begin_);
}

std::optional<StudyStatus> LocalService::StudyAtEnd() const {
  const std::lock_guard lock(mutex_);
  return study_at_end_;
}

bool LocalService::WaitForEnd(absl::Duration timeout) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                         [this] { return worker_has_ended_; });
}

void LocalService::Watch() {
  const std::string log = options_.folder + "/worker.log";
  std::optional<int> status;
  int num_signals = 0;
  while (!status) {
    status = WaitForProcess(worker_, InterruptEvents(), absl::InfiniteDuration());
    for (uint64_t signals = status ? 0 : InterruptsSeen(); signals > 0; --signals) {
      interrupted_ = true;
      Tell(worker_, SIGTERM);
      on_signal_(++num_signals);
    }
  }
  Client client(address_, kLastQuestion, ServerSource::kOwn);
  const absl::StatusOr<StudyStatus> study = client.studies().GetStudy(options_.study);
  const bool finished = study.ok() && study->finished;
  {
    const std::lock_guard lock(mutex_);
    worker_has_ended_ = true;
    if (study.ok()) study_at_end_ = *study;
    if (!finished && !interrupted_) {
      const int code = WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
      const std::string word = LastWordOfWorker();
      worker_failure_.blocked = code == static_cast<int>(ExitCode::kBlocked);
      // What it was started with is wrong: how it ended says no more.
      const bool says_all = code == static_cast<int>(ExitCode::kConfiguration);
      worker_failure_.text =
          worker_failure_.blocked
              ? ErrorOf(word)
              : absl::StrCat(
                    says_all ? "" : absl::StrCat("hpo-worker ", DescribeEnd(*status), ": "),
                    LastErrorOf(log, worker_log_begin_));
    }
  }
  ended_.notify_all();
  // Ends the watch of a study that goes on, too. The destructor reaps it.
  if (!finished) Tell(server_, SIGTERM);
}

}  // namespace hpo::cli
