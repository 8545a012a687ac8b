// A SIGTERM that did not come by way of the worker. Slurm, and who ends a whole tree of processes,
// sends it to every process of a job at once: to the worker, to this trainer and to its program.
#pragma once

#include <csignal>

namespace hpo::command {

namespace termination_internal {

inline volatile std::sig_atomic_t seen = 0;

}  // namespace termination_internal

// From here on a SIGTERM is only noted. Programs that are started do not inherit that: exec resets
// a handler, unlike SIG_IGN.
inline void NoteTermination() {
  struct sigaction action {};
  action.sa_handler = [](int) { termination_internal::seen = 1; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
}

// Whether a SIGTERM has come since.
inline bool TerminationSeen() { return termination_internal::seen != 0; }

}  // namespace hpo::command
