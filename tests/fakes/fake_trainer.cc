// A trainer without a model, for tests of everything around trainers: it speaks the protocol, and
// does what it is told, in milliseconds. Also `hpo-worker --trainer build/dev/tests/fake_trainer`.
//
// Every knob is read from the trial's parameter `fake.NAME`, else the environment HPO_FAKE_NAME
// (upper case):
//   measurements   how many before the outcome (3)
//   pace_ms        wait before each measurement; a stop request ends the wait (0)
//   pace_fifo      path of a FIFO: one byte is read from it before each measurement
//   metric         name of the metric (macro_f1)
//   oom_above      out of memory where micro-batch x tok.max_length, or half of it with
//                  checkpointing, exceeds this (never)
//   oom_kind       of that OOM, as in the protocol (CONFIGURATION)
//   recover        1: on that OOM halve the micro-batch, then turn on checkpointing where the job
//                  allows it, and go on, as hpo-trainer does (0)
//   fault          what goes wrong (nothing): abort, segv, kill, exit:N, hang (deaf to stop
//                  requests), garbage (a line that is not JSON), torn (half a line), close (closes
//                  the channel and runs on), undying (as close, and a SIGKILL does not end it
//                  before the FIFO fault_hold is opened, or 60 s have passed), quiet_exit (status 0
//                  without an outcome), diverged, no_result; at the start of the process: no_hello,
//                  silent, version:N
//   fault_step     before which measurement, from 1 (1)
//   fault_once     path: the fault happens only while there is no such file, and makes it
//   stop_seconds   how long it says that it may take to obey a stop (it says nothing)
//   stop_ms        how long it takes (0)
//   best           1: best weights are kept in output_dir/best after each measurement (0)
//   leak_mib       memory that each trial takes and none gives back (0)
//   clean          0: the outcome says that the process must not be reused (1)
//   capabilities   comma-separated (plan,stop,memory,reuse)
//   say            text for stderr at the start of each trial
//
// The metric after measurement k is  best * (1 - 2^-k),  with
//   best = exp(-((log10 lr + 4.5)^2 + ((max_length - 256) / 256)^2 + (log2(E) - 5)^2 / 16) / 2)
// over train.lr (3e-5), tok.max_length (256) and the effective batch E: smooth, in (0, 1), highest
// at lr = 10^-4.5, length 256, E = 32. A parameter that the trial lacks takes the value in
// brackets.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/protocol/trainer_protocol.h"

namespace hpo {
namespace {

int ProtocolFd() {
  const char* fd = std::getenv("HPO_TRAINER_FD");
  return fd == nullptr ? kTrainerProtocolFd : std::atoi(fd);
}

std::optional<std::string> Knob(const ParamMap& params, const std::string& name) {
  if (const auto found = params.find("fake." + name); found != params.end()) {
    return FormatParam(found->second);
  }
  const char* value = std::getenv(("HPO_FAKE_" + absl::AsciiStrToUpper(name)).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

int64_t IntKnob(const ParamMap& params, const std::string& name, int64_t otherwise) {
  int64_t value = otherwise;
  if (const auto text = Knob(params, name); text && !absl::SimpleAtoi(*text, &value)) {
    std::cerr << "fake_trainer: " << name << ": expected an integer, got " << *text << "\n";
    std::exit(78);
  }
  return value;
}

// The channel, blocking.
class Channel {
 public:
  void SendText(const std::string& text) {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t count = send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) std::exit(0);  // the supervisor is gone
      sent += static_cast<size_t>(count);
    }
  }
  void Send(const UpMessage& message) { SendText(EncodeUp(message) + "\n"); }

  // The next message; nullopt after `timeout_ms` (-1: never), and at the end of the channel.
  std::optional<DownMessage> Receive(int timeout_ms) {
    while (!absl::StrContains(buffer_, '\n')) {
      pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
      if (poll(&readable, 1, timeout_ms) == 0) return std::nullopt;
      char piece[4096];
      const ssize_t count = recv(fd_, piece, sizeof piece, 0);
      if (count <= 0) {
        closed_ = true;
        return std::nullopt;
      }
      buffer_.append(piece, static_cast<size_t>(count));
    }
    const size_t newline = buffer_.find('\n');
    const absl::StatusOr<DownMessage> message = DecodeDown(buffer_.substr(0, newline));
    buffer_.erase(0, newline + 1);
    if (message.ok()) return *message;
    std::cerr << "fake_trainer: " << message.status() << "\n";
    std::exit(99);
  }

  bool closed() const { return closed_; }
  void Close() { close(fd_); }

 private:
  const int fd_ = ProtocolFd();
  std::string buffer_;
  bool closed_ = false;
};

[[noreturn]] void WaitForever() {
  for (;;) pause();
}

// To its parent a process that another one traces has not ended before the tracer has. The tracer
// is no descendant of this process and does not carry its mark, by which it would be ended as well.
void BeTraced(const std::string& hold) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) std::exit(99);
  const pid_t tracee = getpid();
  const pid_t starter = fork();
  char word = 0;
  if (starter == 0) {
    if (fork() != 0) _exit(0);
    setsid();
    for (char** entry = environ; *entry != nullptr; ++entry) memset(*entry, 'x', strlen(*entry));
    alarm(60);
    close(kTrainerProtocolFd);
    const bool traces = read(pair[1], &word, 1) == 1 &&
                        ptrace(PTRACE_SEIZE, tracee, nullptr, nullptr) == 0 &&
                        write(pair[1], &word, 1) == 1;
    _exit(traces && open(hold.c_str(), O_RDONLY) >= 0 ? 0 : 1);
  }
  waitpid(starter, nullptr, 0);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  close(pair[1]);
  if (write(pair[0], &word, 1) != 1 || read(pair[0], &word, 1) != 1) std::exit(99);
}

double BestMetric(const TrainerJob& job) {
  const double lr = FindDouble(job.task.params, "train.lr").value_or(3e-5);
  const double length = FindDouble(job.task.params, "tok.max_length").value_or(256);
  const auto batch = static_cast<double>(std::max<int64_t>(1, job.task.plan.effective_batch));
  const double distance = std::pow(std::log10(lr) + 4.5, 2) + std::pow((length - 256) / 256, 2) +
                          std::pow(std::log2(batch) - 5, 2) / 16;
  return std::exp(-distance / 2);
}

class FakeTrial {
 public:
  // `leaked` outlives the trial.
  FakeTrial(Channel& channel, const TrainerJob& job, std::vector<std::string>& leaked)
      : channel_(channel), job_(job), leaked_(leaked) {
    plan_ = job.task.plan;
  }

  void Run() {
    if (const auto text = Knob(job_.task.params, "say")) std::cerr << *text << std::endl;
    leaked_.emplace_back(static_cast<size_t>(IntKnob(job_.task.params, "leak_mib", 0)) << 20, 'x');
    SendMemory("Training Start");
    if (!FitMemory()) return;
    if (const int64_t seconds = IntKnob(job_.task.params, "stop_seconds", 0); seconds > 0) {
      channel_.Send(ProgressMessage{.step = 0, .stop_time = absl::Seconds(seconds)});
    }
    const int64_t count = IntKnob(job_.task.params, "measurements", 3);
    for (int64_t k = 1; k <= count; ++k) {
      if (k == IntKnob(job_.task.params, "fault_step", 1) && !Fault()) return;
      if (!Pace()) return;
      Measure(k);
    }
    SendMemory("Trial Success");
    Finish(Completed{.metrics = last_.metrics, .model_path = best_path_});
  }

 private:
  // The OOM region; false: the trial has ended there.
  bool FitMemory() {
    const int64_t threshold = IntKnob(job_.task.params, "oom_above", -1);
    const int64_t length = FindInt(job_.task.params, "tok.max_length").value_or(256);
    if (threshold < 0) return true;
    while (plan_.micro_batch * length > threshold * (plan_.checkpointing ? 2 : 1)) {
      ++report_.num_ooms;
      SendMemory("OOM Error");
      if (IntKnob(job_.task.params, "recover", 0) != 1 || !Shrink()) {
        OutOfMemory oom;
        oom.kind = ParseName<OomKind>(Knob(job_.task.params, "oom_kind").value_or(""))
                       .value_or(OomKind::kConfiguration);
        oom.needed = job_.task.predicted;
        oom.requested = MiB(length);
        oom.peak = MiB(plan_.micro_batch * length);
        oom.limit = job_.task.limit;
        oom.phase = "forward";
        oom.plan = plan_;
        oom.message = "fake out of memory";
        Finish(oom);
        return false;
      }
      ++report_.num_replans;
      MemoryMessage replan = Memory("replan");
      replan.plan = plan_;
      channel_.Send(replan);
    }
    return true;
  }

  // Takes the next smaller plan; false: there is none.
  bool Shrink() {
    if (plan_.micro_batch > 1) {
      plan_.micro_batch = (plan_.micro_batch + 1) / 2;
      return true;
    }
    return job_.task.memory.allow_checkpointing && !std::exchange(plan_.checkpointing, true);
  }

  // False: the trial has ended there.
  bool Fault() {
    const std::string fault = Knob(job_.task.params, "fault").value_or("");
    if (fault.empty()) return true;
    if (const auto once = Knob(job_.task.params, "fault_once")) {
      if (std::filesystem::exists(*once)) return true;
      std::ofstream(*once) << "done\n";
    }
    if (fault == "abort") std::abort();
    if (fault == "segv") std::raise(SIGSEGV);
    if (fault == "kill") std::raise(SIGKILL);
    if (fault == "hang") WaitForever();
    if (fault == "quiet_exit") std::exit(0);
    if (absl::StartsWith(fault, "exit:")) std::exit(std::atoi(fault.c_str() + strlen("exit:")));
    if (fault == "garbage") channel_.SendText("this is not JSON\n");
    if (fault == "torn") {
      channel_.SendText("{\"type\":\"measure");
      std::exit(3);
    }
    if (fault == "undying") BeTraced(Knob(job_.task.params, "fault_hold").value_or(""));
    if (fault == "close" || fault == "undying") {
      channel_.Close();
      WaitForever();
    }
    if (fault == "diverged") {
      Finish(Failed{.failure_class = FailureClass::kDiverged, .message = "fake: loss is nan"});
      return false;
    }
    if (fault == "no_result") {
      Finish(std::nullopt);
      return false;
    }
    return true;
  }

  // Waits as told; false: stopped meanwhile.
  bool Pace() {
    if (const auto fifo = Knob(job_.task.params, "pace_fifo")) {
      if (pace_fd_ < 0) pace_fd_ = open(fifo->c_str(), O_RDONLY | O_CLOEXEC);
      char byte = 0;
      [[maybe_unused]] const ssize_t count = read(pace_fd_, &byte, 1);
    }
    const auto message =
        channel_.Receive(static_cast<int>(IntKnob(job_.task.params, "pace_ms", 0)));
    if (channel_.closed()) std::exit(0);
    if (!message) return true;
    if (std::holds_alternative<ShutdownRequest>(*message)) std::exit(0);
    const auto* stop = std::get_if<StopRequest>(&*message);
    if (stop == nullptr) std::exit(99);
    poll(nullptr, 0, static_cast<int>(IntKnob(job_.task.params, "stop_ms", 0)));
    if (stop->reason == "pruned") {
      Finish(StoppedByPruner{.pruner = "", .step = last_.step, .metrics = last_.metrics});
    } else {
      Finish(std::nullopt);
    }
    return false;
  }

  void Measure(int64_t k) {
    const std::string metric = Knob(job_.task.params, "metric").value_or("macro_f1");
    const double value = BestMetric(job_) * (1 - std::pow(2.0, -static_cast<double>(k)));
    last_ = {.step = k, .epoch = static_cast<double>(k), .metrics = {{metric, value}}};
    channel_.Send(MeasurementMessage{last_});
    if (IntKnob(job_.task.params, "best", 0) == 0) return;
    best_path_ = job_.output_dir + "/best";
    std::filesystem::create_directories(best_path_);
    std::ofstream(best_path_ + "/model.safetensors") << "weights of step " << k << "\n";
    channel_.Send(CheckpointMessage{.kind = "best", .path = best_path_, .step = k});
  }

  MemoryMessage Memory(const std::string& stage) const {
    return {.stage = stage,
            .allocated = MiB(1),
            .reserved = MiB(2),
            .free = MiB(64),
            .total = job_.task.limit,
            .peak = MiB(plan_.micro_batch),
            .plan = std::nullopt,
            .step = last_.step};
  }
  void SendMemory(const std::string& stage) { channel_.Send(Memory(stage)); }

  void Finish(std::optional<TrialOutcome> outcome) {
    report_.limit = job_.task.limit;
    report_.live_peak = MiB(plan_.micro_batch);
    channel_.Send(OutcomeMessage{.outcome = std::move(outcome),
                                 .memory = report_,
                                 .final_plan = plan_,
                                 .clean = IntKnob(job_.task.params, "clean", 1) == 1});
  }

  Channel& channel_;
  const TrainerJob& job_;
  std::vector<std::string>& leaked_;
  MemoryPlan plan_;
  MemoryReport report_;
  Measurement last_;
  std::string best_path_;
  int pace_fd_ = -1;
};

int Main() {
  const std::string fault = Knob({}, "fault").value_or("");
  if (fault == "no_hello") {
    std::cerr << "fake_trainer: no hello today" << std::endl;
    return 3;
  }
  if (fault == "silent") WaitForever();
  Channel channel;
  Hello hello{.program = "fake_trainer 1"};
  hello.capabilities =
      absl::StrSplit(Knob({}, "capabilities").value_or("plan,stop,memory,reuse"), ',');
  if (absl::StartsWith(fault, "version:")) {
    hello.version = std::atoi(fault.c_str() + strlen("version:"));
  }
  channel.Send(hello);
  std::vector<std::string> leaked;
  for (;;) {
    const std::optional<DownMessage> message = channel.Receive(-1);
    if (!message || std::holds_alternative<ShutdownRequest>(*message)) return 0;
    // A stop that crossed the outcome is of no interest any more.
    if (const auto* job = std::get_if<TrainerJob>(&*message))
      FakeTrial(channel, *job, leaked).Run();
  }
}

}  // namespace
}  // namespace hpo

int main() { return hpo::Main(); }
