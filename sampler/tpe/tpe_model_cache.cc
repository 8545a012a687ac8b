#include "sampler/tpe/tpe_model_cache.h"

#include <algorithm>
#include <limits>

namespace hpo::sampler {
namespace {

// Models are some hundred bytes per trial each.
constexpr size_t kMostModels = 4;
// A model that nobody asks for is dropped rather than told of ever more changes.
constexpr size_t kMostChanges = 10'000;

// Whether what `before` taught is what `trial` teaches, as long as it runs.
bool TeachesTheSame(const HistoryTrial& before, const HistoryTrial& trial) {
  return before.state == trial.state && !IsFinished(trial) && before.memory == trial.memory &&
         before.prune_reason == trial.prune_reason;
}

}  // namespace

std::vector<Bytes> TpeModelCache::TurnsOf(const HistoryTrial& trial, MemoryPolicy policy) {
  std::vector<Bytes> turns;
  if (const Bytes need = MemoryNeed(trial, policy); need > Bytes{}) turns.push_back(need);
  if (const auto larger = LargerClassThan(trial); larger.has_value()) turns.push_back(*larger);
  return turns;
}

void TpeModelCache::Observe(const HistoryTrial* before, const HistoryTrial& trial) {
  const absl::WriterMutexLock lock(&mutex_);
  if (before != nullptr && before->params != trial.params) entries_.clear();
  if (before != nullptr) {
    for (const Bytes turn : TurnsOf(*before, policy_)) turns_.erase({turn, trial.number});
  }
  for (const Bytes turn : TurnsOf(trial, policy_)) turns_.emplace(turn, trial.number);
  if (entries_.size() > kMostModels) {
    entries_.erase(entries_.begin(), entries_.end() - ptrdiff_t{kMostModels});
  }
  if (before != nullptr && TeachesTheSame(*before, trial)) return;
  for (Entry& entry : entries_) entry.changed.push_back(trial.number);
  std::erase_if(entries_, [](const Entry& entry) { return entry.changed.size() > kMostChanges; });
}

bool TpeModelCache::Serves(const TpeModel& model, const SearchSpace& space, Bytes capacity) const {
  const Bytes low = std::min(model.capacity(), capacity);
  const Bytes high = std::max(model.capacity(), capacity);
  if (low <= Bytes{} && high > Bytes{}) return false;  // no limit is known of one of the two
  constexpr TrialNumber kAfterAll{std::numeric_limits<int64_t>::max()};
  const auto next = turns_.upper_bound({low, kAfterAll});
  const bool teach_the_same = next == turns_.end() || next->first > high;
  return teach_the_same && model.space() == space;
}

TpeModelCache::Entry* TpeModelCache::Find(const SearchSpace& space, Bytes capacity) {
  for (Entry& entry : entries_) {
    if (Serves(*entry.model, space, capacity)) return &entry;
  }
  return nullptr;
}

void TpeModelCache::Use(const History& history, const SearchSpace& space, Bytes capacity,
                        absl::FunctionRef<void(const TpeModel&)> use) {
  {
    const absl::WriterMutexLock lock(&mutex_);
    Entry* entry = Find(space, capacity);
    if (entry == nullptr) {
      entries_.push_back({std::make_unique<TpeModel>(space, capacity, policy_, form_), {}});
      entry = &entries_.back();
      for (const auto& [number, trial] : history.trials()) entry->changed.push_back(number);
    }
    if (!entry->changed.empty()) {
      std::vector<TrialNumber> changed = std::move(entry->changed);
      entry->changed.clear();
      std::sort(changed.begin(), changed.end());
      changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
      entry->model->Update(history, changed);
    }
  }
  // Models are dropped in Observe() alone, so it is there still.
  const absl::ReaderMutexLock lock(&mutex_);
  use(*Find(space, capacity)->model);
}

}  // namespace hpo::sampler
