// A server and a worker of this command's own, below one folder: started, watched, ended.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/client/client.h"

namespace hpo::cli {

struct LocalServiceOptions {
  std::string programs;     // folder of hpo-server and hpo-worker
  std::string folder;       // database, logs, the worker's state; created
  std::string snapshot_of;  // serve a copy of this database, for this user alone; empty: serve own
  std::vector<std::string> server_arguments;
  std::vector<std::string> worker_arguments;
  std::string study;  // its name
};

class LocalService {
 public:
  // Starts the server and waits until it answers.
  //   FailedPrecondition  it ended: with what it said
  //   DeadlineExceeded    it does not answer
  static absl::StatusOr<std::unique_ptr<LocalService>> Start(const LocalServiceOptions& options);

  // Tells both to end, the worker first, and waits for them.
  ~LocalService();

  LocalService(const LocalService&) = delete;
  LocalService& operator=(const LocalService&) = delete;

  const std::string& address() const { return address_; }

  // From here on SIGINT and SIGTERM give the running trial back and end the worker, then the
  // server; a second one kills the trial. So does the end of a worker while its study goes on.
  // `on_signal` is called for each of them, from another thread, with how many have come. Once.
  absl::Status StartWorker(std::function<void(int)> on_signal);

  // A signal came.
  bool interrupted() const { return interrupted_; }

  // Waits for the worker's end, at most so long; whether it has ended.
  bool WaitForEnd(absl::Duration timeout);

  // After the worker's end: the study as it left it; nullopt where the server did not answer.
  std::optional<StudyStatus> StudyAtEnd() const;

  // How the worker ended while its study went on: what it said, and whether it can run nothing
  // (ExitCode::kBlocked). Empty: it did not.
  struct Failure {
    std::string text;
    bool blocked = false;
  };
  Failure WorkerFailure() const;

  // The last line of the worker's log; empty: none yet.
  std::string LastWordOfWorker() const;

  // The worker's log since it was started; empty where it cannot be read.
  std::string WorkerLog() const;

 private:
  struct Process {
    pid_t pid = 0;  // 0: none, or reaped
    int fd = -1;    // a pidfd: never another process'
  };

  static absl::StatusOr<Process> StartProgram(const std::vector<std::string>& argv,
                                              const std::string& log);
  static std::optional<int> WaitForProcess(Process& process, int events, absl::Duration timeout);
  static void Tell(const Process& process, int signal);
  explicit LocalService(const LocalServiceOptions& options) : options_(options) {}
  absl::Status StartServer();
  void Watch();

  const LocalServiceOptions options_;
  std::string address_;
  uintmax_t worker_log_begin_ = 0;
  Process server_;
  Process worker_;
  std::atomic<bool> interrupted_{false};
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool worker_has_ended_ = false;
  Failure worker_failure_;
  std::optional<StudyStatus> study_at_end_;
  std::function<void(int)> on_signal_;
  std::thread watcher_;
};

}  // namespace hpo::cli
