#include "worker/agent/engine/engine_time.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/files/spawn.h"
#include "common/interop/slurm/slurm_time.h"
#include "spdlog/spdlog.h"

namespace hpo::agent {
namespace {

constexpr int kSqueueTimeoutMs = 10'000;
constexpr size_t kLongestAnswer = 200;

bool IsDigits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// Whatever a program prints, until it ends or the time is over.
std::string ReadUntilEnd(int fd) {
  std::string text;
  std::array<char, 256> piece;
  pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
  while (text.size() < kLongestAnswer && poll(&readable, 1, kSqueueTimeoutMs) == 1) {
    const ssize_t count = read(fd, piece.data(), piece.size());
    if (count <= 0) break;
    text.append(piece.data(), static_cast<size_t>(count));
  }
  return text;
}

// The last line that squeue prints. Its exit status says no more than that line.
absl::StatusOr<std::string> AskSqueue(const std::string& job) {
  std::array<int, 2> output;
  if (pipe2(output.data(), O_CLOEXEC) != 0) return absl::UnavailableError("no descriptor");
  const absl::StatusOr<pid_t> squeue =
      Spawn({.argv = {"/bin/sh", "-c", absl::StrCat("exec squeue -h -j ", job, " -o %L")},
             .output = output[1],
             .signal_of_parents_death = SIGKILL});
  close(output[1]);
  std::string text = squeue.ok() ? ReadUntilEnd(output[0]) : "";
  close(output[0]);
  HPO_RETURN_IF_ERROR(squeue.status());
  kill(*squeue, SIGKILL);
  while (waitpid(*squeue, nullptr, 0) < 0 && errno == EINTR) {
  }
  absl::StripAsciiWhitespace(&text);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  return lines.back();
}

std::optional<absl::Duration> EndOfVariable(const EngineVariables& variables, absl::Time now) {
  const std::string text = variables("SLURM_JOB_END_TIME").value_or("");
  int64_t seconds = 0;
  if (!absl::SimpleAtoi(text, &seconds)) return std::nullopt;
  const absl::Duration left = absl::FromUnixSeconds(seconds) - now;
  if (left > absl::ZeroDuration()) return left;
  spdlog::warn(
      "SLURM_JOB_END_TIME={} is {} ago by this host's clock, which must differ from that of "
      "Slurm's "
      "controller",
      text, absl::FormatDuration(-absl::Trunc(left, absl::Seconds(1))));
  return std::nullopt;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseSqueueTime(const std::string& text) {
  if (text == "UNLIMITED" || text == "NOT_SET") return absl::InfiniteDuration();
  const absl::StatusOr<absl::Duration> time = ParseSlurmTime(text);
  if (!time.ok()) return Annotate(time.status(), "squeue -o %L");
  return *time;
}

std::optional<absl::Duration> EngineTimeLeft(const EngineVariables& variables, absl::Time now) {
  const std::string job = variables("SLURM_JOB_ID").value_or("");
  if (!IsDigits(job)) return std::nullopt;
  if (const std::optional<absl::Duration> left = EndOfVariable(variables, now)) return left;
  const absl::StatusOr<std::string> answer = AskSqueue(job);
  const absl::StatusOr<absl::Duration> left =
      answer.ok() ? ParseSqueueTime(*answer) : absl::StatusOr<absl::Duration>(answer.status());
  if (left.ok()) return *left;
  spdlog::warn("the time limit of Slurm's job {} is not known, and --time-limit gives none: {}",
               job, std::string(left.status().message()));
  return std::nullopt;
}

}  // namespace hpo::agent
