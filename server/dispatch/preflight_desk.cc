#include "server/dispatch/preflight_desk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/dispatch/preflight_policy.h"

namespace hpo::server {

void PreflightDesk::Hold(const std::string& worker, HeldProposal proposal) {
  {
    absl::MutexLock lock(&mutex_);
    proposal.id = absl::StrCat(epoch_, "-", ++num_held_);
    held_[worker] = {.proposal = std::move(proposal), .given_to = ""};
  }
  news_.Raise();
}

std::optional<HeldProposal> PreflightDesk::Of(const std::string& worker) const {
  absl::MutexLock lock(&mutex_);
  const auto found = held_.find(worker);
  if (found == held_.end()) return std::nullopt;
  return found->second.proposal;
}

void PreflightDesk::Drop(const std::string& worker) {
  {
    absl::MutexLock lock(&mutex_);
    if (held_.erase(worker) == 0) return;
  }
  news_.Raise();
}

int64_t PreflightDesk::NumHeldForOthers(int64_t study_id, const std::string& worker) const {
  absl::MutexLock lock(&mutex_);
  return std::count_if(held_.begin(), held_.end(), [&](const auto& entry) {
    const HeldProposal& held = entry.second.proposal;
    return entry.first != worker && held.study_id == study_id && !held.queued.has_value();
  });
}

std::optional<HeldProposal> PreflightDesk::GiveOut(const std::string& worker,
                                                   const std::string& session) {
  absl::MutexLock lock(&mutex_);
  const auto found = held_.find(worker);
  if (found == held_.end()) return std::nullopt;
  Held& held = found->second;
  if (held.proposal.answered || held.given_to == session) return std::nullopt;
  held.given_to = session;
  return held.proposal;
}

std::optional<HeldProposal> PreflightDesk::Answer(const std::string& worker,
                                                  const std::string& id) {
  absl::MutexLock lock(&mutex_);
  const auto found = held_.find(worker);
  if (found == held_.end() || found->second.proposal.id != id) return std::nullopt;
  found->second.proposal.answered = true;
  return found->second.proposal;
}

void PreflightDesk::EndLookAheads(const std::string& worker) {
  absl::MutexLock lock(&mutex_);
  look_aheads_[worker].count = kMostLookAheads;
}

int PreflightDesk::CountLookAhead(const std::string& worker, const std::string& trial) {
  absl::MutexLock lock(&mutex_);
  LookAheads& counted = look_aheads_[worker];
  if (counted.trial != trial) counted = {.trial = trial, .count = 0};
  return counted.count++;
}

}  // namespace hpo::server
