#include "worker/agent/process/resident_watch.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace hpo::agent {

Bytes ResidentWatch::Margin(Bytes resident) {
  return std::max(MiB(64), Bytes{resident.count / 20});
}

std::optional<Bytes> ResidentWatch::AfterAttempt(Bytes resident, Bytes tensors) {
  largest_tensors_ = std::max(largest_tensors_, tensors);
  held_.push_back(resident - largest_tensors_);
  if (held_.size() < kSettling + kAttempts) return std::nullopt;
  const size_t first = held_.size() - 1 - kAttempts;
  const Bytes growth = held_.back() - held_[first];
  std::vector<Bytes> changes;
  for (size_t i = first; i + 1 < held_.size(); ++i) changes.push_back(held_[i + 1] - held_[i]);
  const auto jumps = changes.begin() + kJumps;
  std::partial_sort(changes.begin(), jumps, changes.end(), std::greater<>());
  const Bytes steady = growth - std::accumulate(changes.begin(), jumps, Bytes{});
  if (steady <= Margin(resident)) return std::nullopt;
  return growth;
}

}  // namespace hpo::agent
