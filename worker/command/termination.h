// A SIGTERM that did not come by way of the worker. Slurm, and who ends a whole tree of processes,
// sends it to every process of a job at once: to the worker, to this trainer and to its program.
#pragma once

namespace hpo::command {

// From here on a SIGTERM is only noted. Programs that are started do not inherit that.
void NoteTermination();

// Whether a SIGTERM has come since.
bool TerminationSeen();

}  // namespace hpo::command
