#include "server/studies/held_trials.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/studies/study_end.h"
#include "server/workers/lease.h"
#include "server/workers/worker_registry.h"

namespace hpo::server {
namespace {

constexpr size_t kShown = 3;

std::string InSeconds(absl::Duration time, absl::Duration step) {
  const absl::Duration shown = absl::Floor(std::max(time, absl::ZeroDuration()), step);
  return absl::StrCat(absl::ToInt64Seconds(shown), " s");
}

// The lease's worker, where its connection has closed.
std::optional<RegisteredWorker> CutOffHolder(const SchedulerState& state, const HeldLease& lease) {
  std::optional<RegisteredWorker> worker = state.workers.Find(lease.worker);
  const bool cut_off =
      worker && worker->facts.instance_key == lease.instance_key && worker->cut_off_at;
  return cut_off ? worker : std::nullopt;
}

// Empty: its worker is heard of.
std::string SilenceOf(const SchedulerState& state, const HeldLease& lease, absl::Duration step) {
  const absl::Duration now = state.clock.Monotonic();
  const LeasePolicy& policy = state.options.lease;
  const std::optional<RegisteredWorker> cut_off = CutOffHolder(state, lease);
  const bool missing = now - lease.heard_at > 2 * HeartbeatInterval(policy);
  if (!missing && !cut_off) return "";
  absl::Duration over_at = lease.renewed_at + 2 * policy.ttl;
  std::string what =
      absl::StrCat("has not been heard of for ", InSeconds(now - lease.heard_at, step));
  if (cut_off) {
    const absl::Duration heard =
        std::max({*cut_off->cut_off_at, cut_off->last_contact, lease.heard_at});
    over_at = std::min(over_at, heard + AttendanceGrace(policy));
    what =
        absl::StrCat("closed its connection ", InSeconds(now - *cut_off->cut_off_at, step), " ago");
  }
  return absl::StrCat("trial #", lease.trial.value, ": its worker ", lease.worker, " ", what,
                      "; the trial is queued again in ", InSeconds(over_at - now, step));
}

// "a, b, c and 4 more".
std::string FirstFew(std::vector<std::string> texts, absl::string_view between) {
  const size_t more = texts.size() - std::min(texts.size(), kShown);
  texts.resize(texts.size() - more);
  return absl::StrCat(absl::StrJoin(texts, between),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

}  // namespace

std::vector<std::string> SilentTrials(const SchedulerState& state, const StudyRuntime& study,
                                      absl::Duration step) {
  std::vector<std::string> silent;
  for (const HeldLease& lease : study.open.leases()) {
    if (std::string said = SilenceOf(state, lease, step); !said.empty()) {
      silent.push_back(std::move(said));
    }
  }
  return silent;
}

std::string DescribeHeld(const SchedulerState& state, const StudyRuntime& study,
                         const std::string& asker) {
  std::vector<std::string> running;
  for (const HeldLease& lease : study.open.leases()) {
    if (!SilenceOf(state, lease, absl::Seconds(1)).empty()) continue;
    running.push_back(absl::StrCat("trial #", lease.trial.value, " on ",
                                   lease.worker == asker ? "this worker" : lease.worker));
  }
  std::string text = WhyEnding(study.standing());
  if (text.empty()) {
    text = "the rest of its budget is handed out, and this worker takes what comes back";
  }
  if (!running.empty()) absl::StrAppend(&text, "; running: ", FirstFew(running, ", "));
  const std::vector<std::string> silent = SilentTrials(state, study);
  if (!silent.empty()) absl::StrAppend(&text, "; ", FirstFew(silent, "; "));
  return text;
}

std::string OfStudy(const std::string& study, absl::string_view obstacle) {
  return absl::StrCat("study ", study, ": ", obstacle);
}

std::string WhyDrained(const std::string& worker) {
  return absl::StrCat("drained; to go on: hpo worker resume ", worker);
}

}  // namespace hpo::server
