#include "cli/fleet/engines/slurm_queue.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/interop/slurm/slurm_time.h"

namespace hpo::cli {
namespace {

// Base states and flags of squeue(1), "JOB STATE CODES".
FleetWorkerState StateOf(absl::string_view state) {
  if (state == "RUNNING") return FleetWorkerState::kRunning;
  for (const char* const waits :
       {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESIZING",
        "SUSPENDED", "SPECIAL_EXIT", "RESV_DEL_HOLD", "STOPPED"}) {
    if (state == waits) return FleetWorkerState::kWaiting;
  }
  for (const char* const ends : {"COMPLETING", "SIGNALING", "STAGE_OUT"}) {
    if (state == ends) return FleetWorkerState::kEnding;
  }
  return FleetWorkerState::kEnded;
}

int64_t NumberOf(absl::string_view text) {
  int64_t number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

// Of "12_7": the job, then the task.
std::pair<int64_t, int64_t> PlaceOf(absl::string_view task) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(task, absl::MaxSplits('_', 1));
  return {NumberOf(parts.first), NumberOf(parts.second)};
}

}  // namespace

absl::StatusOr<std::vector<NamedWorker>> ParseSlurmQueue(absl::string_view printed) {
  std::vector<NamedWorker> workers;
  for (const absl::string_view line : absl::StrSplit(printed, '\n', absl::SkipWhitespace())) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits('|', 5));
    if (fields.size() != 6) {
      return absl::InternalError(absl::StrCat("squeue: expected lines of the form ",
                                              kSlurmQueueFormat, ", got '", line, "'"));
    }
    const std::optional<std::string> fleet = NameOfLabel(fields[5]);
    if (!fleet) continue;
    NamedWorker found{.fleet = *fleet, .worker = {.id = fields[0], .state = StateOf(fields[1])}};
    found.worker.name = "slurm-" + fields[0];
    found.worker.node = fields[2];
    if (found.worker.state == FleetWorkerState::kWaiting && fields[4] != "None") {
      found.worker.reason = fields[4];
    }
    const absl::StatusOr<absl::Duration> time = ParseSlurmTime(fields[3]);
    if (time.ok() && found.worker.state == FleetWorkerState::kRunning) {
      found.worker.running_for = *time;
    }
    workers.push_back(std::move(found));
  }
  return workers;
}

std::string JobOfTask(absl::string_view task) {
  return std::string(task.substr(0, task.find('_')));
}

std::vector<std::string> TasksToEnd(const std::vector<NamedWorker>& workers, size_t keep) {
  std::vector<FleetWorker> live;
  for (const NamedWorker& named : workers) {
    if (named.worker.IsLive()) live.push_back(named.worker);
  }
  std::sort(live.begin(), live.end(), [](const FleetWorker& a, const FleetWorker& b) {
    const auto key = [](const FleetWorker& worker) {
      return std::tuple(worker.state == FleetWorkerState::kRunning, -PlaceOf(worker.id).first,
                        -PlaceOf(worker.id).second);
    };
    return key(a) < key(b);
  });
  std::vector<std::string> ended;
  for (size_t i = 0; i + keep < live.size(); ++i) ended.push_back(live[i].id);
  return ended;
}

}  // namespace hpo::cli
