// What the dry runs of a study came to, for people. Pure.
#pragma once

#include <optional>
#include <span>

#include "common/study/study_status.h"
#include "server/storage/dry_run_store.h"
#include "server/storage/records.h"

namespace hpo::server {

// nullopt: there were none. `trouble` is left empty.
std::optional<DryRunCounts> CountDryRuns(std::span<const DryRunRecord> dry_runs, TrialTimes times);

}  // namespace hpo::server
