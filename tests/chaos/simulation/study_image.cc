#include "tests/chaos/simulation/study_image.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/study/study_json.h"
#include "nlohmann/json.hpp"
#include "server/studies/study_description.h"

namespace hpo {
namespace {

std::string TextOf(const sampler::MemoryObservation& seen) {
  return absl::StrCat(seen.bytes.count, seen.censored ? "+" : "", "/", seen.limit.count, " ",
                      PlanToJson(seen.plan).dump());
}

std::string TextOf(const sampler::HistoryTrial& trial) {
  std::vector<std::string> memory;
  for (const sampler::MemoryObservation& seen : trial.memory) memory.push_back(TextOf(seen));
  std::vector<std::string> intermediate;
  for (const auto& [step, value] : trial.intermediate) {
    intermediate.push_back(absl::StrCat(step, ":", value));
  }
  return absl::StrCat(Name(trial.state), " ", trial.prune_reason ? Name(*trial.prune_reason) : "",
                      " ", ParamsToJson(trial.params).dump(), " losses ",
                      absl::StrJoin(trial.losses, ","), " seen ", absl::StrJoin(intermediate, ","),
                      " memory ", absl::StrJoin(memory, ","), " violation ", trial.violation,
                      trial.budgeted ? "" : " outside the budget");
}

std::string TextOf(const server::HeldLease& lease) {
  return absl::StrCat(lease.attempt.value, " ", lease.token_hash, " ", lease.worker, " ",
                      lease.instance_key, lease.suspect ? " suspect" : "",
                      lease.preempted ? " preempted" : "", lease.cancelled ? " cancelled" : "");
}

std::string TextOf(const server::QueuedTrial& queued) {
  return absl::StrCat(ParamsToJson(queued.trial.params).dump(), " from ",
                      queued.trial.min_capacity.count, " ",
                      queued.last_oom ? OutcomeToJson(*queued.last_oom).dump() : "");
}

std::string TextOf(const TrialCounts& counts) {
  return absl::StrCat(counts.queued, " ", counts.running, " ", counts.completed, " ", counts.pruned,
                      " ", counts.failed, " ", counts.cancelled, " ", counts.oom_met, " ",
                      counts.oom_predicted, " ", counts.oom_recovered, " ", counts.demonstration,
                      " ", counts.imported, " ", counts.infeasible);
}

absl::Status AddStudy(const server::TrialScheduler& scheduler, const std::string& name,
                      StudyImage& image) {
  HPO_ASSIGN_OR_RETURN(const server::StudyRuntime* const study,
                       scheduler.state().studies.Find(name));
  const auto set = [&](const std::string& field, const std::string& text) {
    image[absl::StrCat(name, "/", field)] = text;
  };
  set("spec", StudyToJson(study->spec()).dump());
  set("data", absl::StrJoin(study->data_digests(), ",", absl::PairFormatter("=")));
  set("next number", absl::StrCat(study->next_number().value));
  set("last sequence", absl::StrCat(study->changes.last()));
  const server::StudyStanding standing = study->standing();
  set("finished", absl::StrCat(standing.finished));
  set("budget left", absl::StrCat(standing.budget_left));
  set("termination", standing.termination);
  set("order", std::string(Name(standing.order)));
  set("failure", standing.failure ? standing.failure->why : "");
  for (const server::QueuedTrial& queued : study->open.queue()) {
    set(absl::StrCat("queued #", queued.trial.id.number.value), TextOf(queued));
  }
  for (const server::HeldLease& lease : study->open.leases()) {
    set(absl::StrCat("lease #", lease.trial.value), TextOf(lease));
  }
  const sampler::History history = study->history();
  set("history sequence", absl::StrCat(history.sequence(), " ", history.num_finished()));
  for (const auto& [number, trial] : history.trials()) {
    set(absl::StrCat("trial #", number.value), TextOf(trial));
  }
  HPO_ASSIGN_OR_RETURN(const StudyStatus status, server::DescribeStudy(scheduler.state(), name));
  set("counts", TextOf(status.counts));
  set("best", absl::StrCat(status.best_trial ? status.best_trial->value : -1, " ",
                           status.best_value.value_or(0.0), " ", status.best_violation));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StudyImage> TakeImage(const server::TrialScheduler& scheduler) {
  StudyImage image;
  for (const std::string& name : scheduler.state().studies.Names()) {
    HPO_RETURN_IF_ERROR(AddStudy(scheduler, name, image));
  }
  return image;
}

absl::Status CompareImages(const StudyImage& memory, const StudyImage& rebuilt) {
  StudyImage all = memory;
  all.insert(rebuilt.begin(), rebuilt.end());
  const auto text = [](const StudyImage& image, const std::string& field) {
    const auto found = image.find(field);
    return found == image.end() ? std::string("absent") : found->second;
  };
  for (const auto& [field, ignored] : all) {
    const std::string held = text(memory, field);
    const std::string stored = text(rebuilt, field);
    if (held == stored) continue;
    return absl::InternalError(
        absl::StrCat(field, ": memory has [", held, "], the rows [", stored, "]"));
  }
  return absl::OkStatus();
}

}  // namespace hpo
