// Times as Slurm's programs print them.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hpo {

// "4:05", "3:04:05" or "2-03:04:05": days, hours, minutes and seconds (squeue(1), TimeLeft).
//   InvalidArgument  anything else, such as UNLIMITED
absl::StatusOr<absl::Duration> ParseSlurmTime(absl::string_view text);

}  // namespace hpo
