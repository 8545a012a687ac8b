#include "server/termination_signal.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace hpo::server {
namespace {

sigset_t BothSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

void ExitNow(int signal) { _exit(128 + signal); }

}  // namespace

TerminationSignal::TerminationSignal() {
  const sigset_t set = BothSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

std::optional<int> TerminationSignal::WaitFor(absl::Duration timeout) const {
  const sigset_t set = BothSignals();
  const timespec limit = absl::ToTimespec(timeout);
  const int signal = sigtimedwait(&set, nullptr, &limit);
  if (signal <= 0) return std::nullopt;
  return signal;
}

void TerminationSignal::ExitOnNext() const {
  struct sigaction action {};
  action.sa_handler = ExitNow;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  const sigset_t set = BothSignals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace hpo::server
