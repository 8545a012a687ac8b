// Processes that a trainer started and that outlive it: a launcher's, or those of `bash -c`. They
// are told by a mark in their environment, which whatever a trainer starts inherits, and are ended
// by their process file descriptors: never by a name, never a process of somebody else.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace hpo::agent {

// The environment variable of every trainer that carries the mark.
constexpr char kTrainerMarkVariable[] = "HPO_TRAINER_MARK";

// How long the kernel may take to end a process after SIGKILL, which it does at once but for one
// that waits for a device or a file system, or gives much memory back. Docker waits as long
// (moby, daemon/kill.go).
constexpr absl::Duration kKillPatience = absl::Seconds(10);

// Kills every process that carries `mark`, random and not empty, with its descendants, and waits
// until the carriers are gone, at most `patience`. Returns how many; the log names them, and those
// that stay.
int EndStrayProcesses(const std::string& mark, absl::Duration patience = kKillPatience);

// A new mark for the trainers of this process, kept in the file `name` of `state_folder`, whose
// lock the caller holds. Before that, what trainers of the last process with this folder have left
// is ended. A copy of the folder of another worker says nothing: that worker may be alive. Where
// the mark cannot be kept (a full disk), the log says so: trainers are then not found by the next
// process.
std::string RenewTrainerMark(const std::string& state_folder,
                             const std::string& name = "trainer_mark");

}  // namespace hpo::agent
