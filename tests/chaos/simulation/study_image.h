// What a running server holds in memory of its studies, as text by field, so that it can be
// compared with what another one rebuilds from the same rows.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/scheduler/trial_scheduler.h"

namespace hpo {

// By "study/field". Left out is what a restart changes on purpose: when leases were renewed, what
// the pruner said of a running trial, wall clock that is not stored yet.
using StudyImage = std::map<std::string, std::string>;

absl::StatusOr<StudyImage> TakeImage(const server::TrialScheduler& scheduler);

//   Internal  the images differ; names the first field and both texts
absl::Status CompareImages(const StudyImage& memory, const StudyImage& rebuilt);

}  // namespace hpo
