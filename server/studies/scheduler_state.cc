#include "server/studies/scheduler_state.h"

#include "common/base/status.h"
#include "server/storage/study_store.h"

namespace hpo::server {

bool MayDryRun(const StudyRuntime& study, const StudySpec& spec, const WorkerFacts& worker) {
  return GoesByDryRuns(spec, worker) && !study.dry_runs.HasGivenUp(worker.worker);
}

absl::StatusOr<ServerEpoch> BeginEpoch(Store& store, absl::Time now) {
  ServerEpoch epoch;
  const auto work = [&](Database& database) -> absl::Status {
    StudyStore studies(database);
    HPO_ASSIGN_OR_RETURN(epoch.number, studies.BeginEpoch(now));
    HPO_ASSIGN_OR_RETURN(epoch.database, studies.DatabaseId());
    HPO_ASSIGN_OR_RETURN(epoch.token_secret, studies.TokenSecret());
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(store.Write(work));
  return epoch;
}

}  // namespace hpo::server
