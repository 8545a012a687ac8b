// Reads what squeue prints about fleets. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/fleet/engines/fleet_engine.h"

namespace hpo::cli {

// For squeue --format: what ParseSlurmQueue reads.
inline constexpr char kSlurmQueueFormat[] = "%i|%T|%N|%M|%r|%j";

// The tasks of fleets among what squeue has printed, in its order.
//   Internal  a line of another form
absl::StatusOr<std::vector<NamedWorker>> ParseSlurmQueue(absl::string_view printed);

// The job of a task: "12" of "12_7".
std::string JobOfTask(absl::string_view task);

// The tasks to end so that `keep` of `workers` stay: those that wait first, then those with the
// highest numbers. Those that end already count for neither.
std::vector<std::string> TasksToEnd(const std::vector<NamedWorker>& workers, size_t keep);

}  // namespace hpo::cli
