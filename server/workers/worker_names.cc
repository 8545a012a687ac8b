#include "server/workers/worker_names.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hpo::server {

absl::StatusOr<NameGrant> WorkerNames::Claim(const NamedProcess& process, absl::Duration now) {
  const auto grant = [&](NameGrant how) {
    holders_[process.name] =
        Holder{.instance_key = process.instance_key, .how = how, .last_beat = now};
    return how;
  };
  const auto found = holders_.find(process.name);
  if (found == holders_.end()) return grant(NameGrant::kFree);
  Holder& holder = found->second;
  if (holder.instance_key == process.instance_key) {
    holder.last_beat = now;
    return holder.how;
  }
  if (holder.instance_key == process.predecessor) return grant(NameGrant::kSuccessor);
  const absl::Duration since =
      holder.newcomers.try_emplace(process.instance_key, now).first->second;
  if (holder.last_beat > since) {
    // Whoever asked earlier would be refused as well, and begins again.
    std::erase_if(holder.newcomers,
                  [&](const auto& newcomer) { return newcomer.second < holder.last_beat; });
    return absl::AlreadyExistsError(
        absl::StrCat("worker ", process.name,
                     ": another process of this name is alive; give this one its own --name"));
  }
  if (now - since > patience_) return grant(NameGrant::kTakenOver);
  return absl::UnavailableError(absl::StrCat(
      "worker ", process.name, ": another process has this name; it is free if that one stays ",
      "silent for ", absl::FormatDuration(absl::Ceil(patience_ - (now - since), absl::Seconds(1))),
      " more"));
}

void WorkerNames::Beat(const NamedProcess& process, absl::Duration now) {
  const auto found = holders_.find(process.name);
  if (found == holders_.end() || found->second.instance_key != process.instance_key) return;
  found->second.last_beat = now;
}

void WorkerNames::Free(const NamedProcess& process) {
  const auto found = holders_.find(process.name);
  if (found == holders_.end() || found->second.instance_key != process.instance_key) return;
  holders_.erase(found);
}

void WorkerNames::Restore(const NamedProcess& process) {
  holders_.try_emplace(process.name, Holder{.instance_key = process.instance_key});
}

}  // namespace hpo::server
