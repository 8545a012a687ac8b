#include "server/studies/study_sampler.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sampler/gp/regret_bound.h"
#include "server/trials/typed_params.h"

namespace hpo::server {
namespace {

sampler::History WithinOf(const sampler::History& history, const SearchSpace& space) {
  const auto within = [&space](const auto& trial) { return IsWithin(space, trial.second.params); };
  if (std::all_of(history.trials().begin(), history.trials().end(), within)) return history;
  sampler::History part;
  for (const auto& [number, trial] : history.trials()) {
    if (IsWithin(space, trial.params)) part.Apply({.sequence = history.sequence(), .trial = trial});
  }
  return part;
}

}  // namespace

void StudySampler::Observe(sampler::HistoryEvent event) {
  absl::MutexLock lock(&mutex_);
  const TrialNumber number = event.trial.number;
  unobserved_[number] = {.sequence = event.sequence, .trial = std::move(event.trial)};
}

void StudySampler::ObserveReports(int64_t sequence, TrialNumber trial,
                                  const sampler::Reports& reports) {
  absl::MutexLock lock(&mutex_);
  News& news = unobserved_[trial];
  news.sequence = sequence;
  news.reports.insert(news.reports.end(), reports.begin(), reports.end());
}

void StudySampler::Fold(std::map<TrialNumber, News> news) {
  std::vector<std::pair<int64_t, TrialNumber>> by_sequence;
  for (auto& [number, one] : news) {
    by_sequence.emplace_back(one.sequence, number);
    if (one.trial) observed_.Apply({.sequence = one.sequence, .trial = *std::move(one.trial)});
    observed_.ApplyReports(one.sequence, number, one.reports);
  }
  std::sort(by_sequence.begin(), by_sequence.end());
  for (const auto& [sequence, number] : by_sequence) {
    sampler_->Observe({.sequence = sequence, .trial = observed_.trials().at(number)});
  }
}

absl::StatusOr<sampler::Suggestion> StudySampler::Suggest(
    const StudySpec& spec,
    const std::function<sampler::AskContext(const sampler::History&)>& make_context) {
  std::map<TrialNumber, News> news;
  {
    absl::MutexLock lock(&mutex_);
    news.swap(unobserved_);
  }
  Fold(std::move(news));
  // Here and not with the other reasons to end: it takes a fit, which no lock may wait for.
  std::optional<std::string> why;
  if (spec.budget.regret_bound)
    why = sampler::WhyRegretBounded(WithinOf(observed_, spec.space), spec);
  if (!why) return sampler_->Suggest(make_context(observed_));
  absl::MutexLock lock(&mutex_);
  regret_bounded_ = why;
  return absl::FailedPreconditionError(*std::move(why));
}

void StudySampler::Replace(std::unique_ptr<sampler::Sampler> sampler) {
  sampler_ = std::move(sampler);
}

std::optional<std::string> StudySampler::regret_bounded() const {
  absl::MutexLock lock(&mutex_);
  return regret_bounded_;
}

void StudySampler::SpecChanged() {
  absl::MutexLock lock(&mutex_);
  regret_bounded_.reset();
}

}  // namespace hpo::server
