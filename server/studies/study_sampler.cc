#include "server/studies/study_sampler.h"

#include <algorithm>
#include <utility>

#include "sampler/gp/regret_bound.h"
#include "server/studies/typed_params.h"

namespace hpo {
namespace {

History WithinOf(const History& history, const SearchSpace& space) {
  const auto within = [&space](const auto& trial) { return IsWithin(space, trial.second.params); };
  if (std::all_of(history.trials().begin(), history.trials().end(), within)) return history;
  History part;
  for (const auto& [number, trial] : history.trials()) {
    if (IsWithin(space, trial.params)) part.Apply({.sequence = history.sequence(), .trial = trial});
  }
  return part;
}

}  // namespace

void StudySampler::Observe(HistoryEvent event) {
  absl::MutexLock lock(&mutex_);
  unobserved_.push_back(std::move(event));
}

absl::StatusOr<Suggestion> StudySampler::Suggest(
    const StudySpec& spec, const std::function<AskContext(const History&)>& make_context) {
  std::deque<HistoryEvent> events;
  {
    absl::MutexLock lock(&mutex_);
    events.swap(unobserved_);
  }
  for (const HistoryEvent& event : events) {
    sampler_->Observe(event);
    observed_.Apply(event);
  }
  // Here and not with the other reasons to end: it takes a fit, which no lock may wait for.
  std::optional<std::string> why;
  if (spec.budget.regret_bound) why = WhyRegretBounded(WithinOf(observed_, spec.space), spec);
  if (!why) return sampler_->Suggest(make_context(observed_));
  absl::MutexLock lock(&mutex_);
  regret_bounded_ = why;
  return absl::FailedPreconditionError(*std::move(why));
}

void StudySampler::Replace(std::unique_ptr<Sampler> sampler) { sampler_ = std::move(sampler); }

std::optional<std::string> StudySampler::regret_bounded() const {
  absl::MutexLock lock(&mutex_);
  return regret_bounded_;
}

void StudySampler::SpecChanged() {
  absl::MutexLock lock(&mutex_);
  regret_bounded_.reset();
}

}  // namespace hpo
