#include "server/studies/blocked_study.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "server/placement/capability.h"

namespace hpo::server {

bool EndsByWaiting(const SchedulerState& state, const StudySpec& spec, const QueuedTrial& queued) {
  if (!queued.last_oom) return false;
  const std::optional<Bytes> largest =
      LargestUsable(state.workers.Alive(), spec, queued.trial.params);
  return largest.has_value() && *largest <= queued.trial.min_capacity;
}

bool IsBlocked(const SchedulerState& state, const StudyRuntime& study, int64_t generation) {
  const StudyStanding standing = study.standing();
  if (standing.finished || standing.order == StudyOrder::kPause) return false;
  if (study.open.load().num_held > 0) return false;
  int num_workers = 0;
  for (const RegisteredWorker& worker : state.workers.List()) {
    if (!worker.alive || !CheckTold(study.name(), worker.facts).ok()) continue;
    ++num_workers;
    const bool blocked = study.obstacles.IsBlocked(worker.facts.worker, generation);
    if (!blocked || worker.facts.reads_again || !worker.notice.empty()) return false;
  }
  if (num_workers == 0) return false;
  const StudySpec spec = study.spec();
  const std::vector<QueuedTrial> queue = study.open.queue();
  return std::none_of(queue.begin(), queue.end(), [&](const QueuedTrial& queued) {
    return EndsByWaiting(state, spec, queued);
  });
}

}  // namespace hpo::server
