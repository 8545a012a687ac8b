#include "cli/client/interrupts.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hpo::cli {
namespace {

// Counts the signals that came to this process: the one thing that a handler may do.
int signal_events = -1;

void CountSignal(int /*signal*/) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(signal_events, &one, sizeof one);
}

}  // namespace

absl::Status CountInterrupts() {
  if (signal_events < 0) signal_events = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (signal_events < 0) return absl::UnavailableError(absl::StrCat("eventfd: ", strerror(errno)));
  struct sigaction action {};
  action.sa_handler = CountSignal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return absl::OkStatus();
}

int InterruptEvents() { return signal_events; }

uint64_t InterruptsSeen() {
  uint64_t count = 0;
  return read(signal_events, &count, sizeof count) == sizeof count ? count : 0;
}

}  // namespace hpo::cli
