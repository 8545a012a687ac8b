#include "common/protocol/process_identity.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files/read_file.h"

namespace hpo {
namespace {

// proc(5): "PID (NAME) STATE PPID ...", where NAME may hold anything.
struct ProcStat {
  int64_t pid = 0;
  char state = '?';
  int64_t num_threads = 0;
  int64_t start_ticks = 0;
};

std::optional<ProcStat> ReadStat(const std::string& process) {
  constexpr size_t kThreads = 17;  // both counted from STATE
  constexpr size_t kStart = 19;
  const absl::StatusOr<std::string> text = ReadFile(absl::StrCat("/proc/", process, "/stat"));
  if (!text.ok()) return std::nullopt;
  const size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields =
      absl::StrSplit(text->substr(name_end + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  ProcStat stat;
  const bool whole = fields.size() > kStart &&
                     absl::SimpleAtoi(text->substr(0, text->find(' ')), &stat.pid) &&
                     absl::SimpleAtoi(fields[kThreads], &stat.num_threads) &&
                     absl::SimpleAtoi(fields[kStart], &stat.start_ticks);
  if (!whole) return std::nullopt;
  stat.state = fields[0].front();
  return stat;
}

// A namespace that this kernel does not have is that of the whole machine.
std::string NamespacesOfThis() {
  std::string all;
  for (const char* const name : {"pid", "time"}) {
    std::error_code error;
    const std::string link =
        std::filesystem::read_symlink(absl::StrCat("/proc/self/ns/", name), error).string();
    if (!link.empty()) absl::StrAppend(&all, all.empty() ? "" : " ", link);
  }
  return all;
}

}  // namespace

ProcessIdentity OwnProcess() {
  const absl::StatusOr<std::string> boot_id = ReadFile("/proc/sys/kernel/random/boot_id");
  const std::optional<ProcStat> stat = ReadStat("self");
  const std::string namespaces = NamespacesOfThis();
  // In a container with the /proc of its host the numbers are the host's.
  if (!boot_id.ok() || !stat || stat->pid != getpid() || namespaces.empty()) return {};
  return {.boot_id = std::string(absl::StripAsciiWhitespace(*boot_id)),
          .namespaces = namespaces,
          .pid = stat->pid,
          .start_ticks = stat->start_ticks};
}

bool HasEnded(const ProcessIdentity& process, const ProcessIdentity& own) {
  const bool seen_from_here = !own.boot_id.empty() && process.boot_id == own.boot_id &&
                              process.namespaces == own.namespaces && process.pid > 0;
  if (!seen_from_here) return false;
  if (kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH) return true;
  // Of other users' processes /proc may show nothing.
  const std::optional<ProcStat> stat = ReadStat(absl::StrCat(process.pid));
  if (!stat) return false;
  const bool zombie = stat->state == 'Z' && stat->num_threads <= 1;
  return zombie || stat->start_ticks != process.start_ticks;
}

}  // namespace hpo
