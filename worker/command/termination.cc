#include "worker/command/termination.h"

#include <csignal>

namespace hpo::command {
namespace {

volatile std::sig_atomic_t seen = 0;

}  // namespace

void NoteTermination() {
  struct sigaction action {};
  // A handler, as exec resets it, unlike SIG_IGN.
  action.sa_handler = [](int) { seen = 1; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
}

bool TerminationSeen() { return seen != 0; }

}  // namespace hpo::command
