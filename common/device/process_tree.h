// The processes that a process has started, whatever session, process group or environment they
// have. Linux. Safe from any thread.
#pragma once

#include <sys/types.h>

#include <vector>

#include "absl/time/time.h"

namespace hpo {

// From here on whatever loses its parent below this process becomes its child (a child subreaper),
// so that no descendant can leave. Without effect where it holds already.
void AdoptOrphans();

// All descendants of a process that run now, parents before their children.
std::vector<pid_t> Descendants(pid_t ancestor);

// SIGKILL to all descendants of a process that has not ended, by its number and its process file
// descriptor, which is the caller's. Does not wait for their end.
void KillDescendants(pid_t ancestor, int pidfd);

// Kills all descendants of this process, and reaps its children, until there are none: those that
// they start meanwhile as well. At most `patience`, for one that waits in the kernel.
void EndOwnDescendants(absl::Duration patience);

}  // namespace hpo
