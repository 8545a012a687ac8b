// The TPE models of a study, one per space and capacity that was asked for lately. A model that
// serves one capacity serves every other that the same trials exceed, and than which the same ran
// on smaller cards.
// Threads: Observe() needs exclusive access; Use() may run concurrently with itself.
#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "sampler/api/history.h"
#include "sampler/tpe/tpe_model.h"

namespace hpo::sampler {

class TpeModelCache {
 public:
  TpeModelCache(MemoryPolicy policy, TpeForm form) : policy_(policy), form_(std::move(form)) {}

  // `trial` is what `before` (absent: a new trial) has become.
  void Observe(const HistoryTrial* before, const HistoryTrial& trial) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `use` with the model of all trials of `history`, which has been observed trial by trial.
  void Use(const History& history, const SearchSpace& space, Bytes capacity,
           absl::FunctionRef<void(const TpeModel&)> use) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::unique_ptr<TpeModel> model;
    std::vector<TrialNumber> changed;  // since the model's last update
  };

  static std::vector<Bytes> TurnsOf(const HistoryTrial& trial, MemoryPolicy policy);
  bool Serves(const TpeModel& model, const SearchSpace& space, Bytes capacity) const;
  Entry* Find(const SearchSpace& space, Bytes capacity) ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  MemoryPolicy policy_;
  TpeForm form_;
  // From which capacities on trials teach something else, with their numbers.
  std::set<std::pair<Bytes, TrialNumber>> turns_;
  absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // the oldest first
};

}  // namespace hpo::sampler
