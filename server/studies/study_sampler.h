// A study's sampler, and what it has seen of the study's history.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/study/study.h"
#include "sampler/api/history.h"
#include "sampler/api/sampler.h"

namespace hpo::server {

// Thread-safe.
class StudySampler {
 public:
  explicit StudySampler(std::unique_ptr<sampler::Sampler> sampler) : sampler_(std::move(sampler)) {}

  // Single flight: whoever proposes or enqueues a trial holds this over suggestion and commit, so
  // that the next suggestion sees this trial.
  absl::Mutex& propose_mutex() const ABSL_LOCK_RETURNED(propose_mutex_) { return propose_mutex_; }

  // Folded into the sampler with the next suggestion, which sees each trial as its last event left
  // it: as a sampler does that is built from the rows.
  void Observe(sampler::HistoryEvent event);
  // The same where a trial has reported, and nothing else of it has changed.
  void ObserveReports(int64_t sequence, TrialNumber trial, const sampler::Reports& reports);
  // Asks the sampler for a study of `spec`, in a context made from the history that it has seen.
  //   FailedPrecondition  also where the regret bound says that nothing better is left
  //                       (WhyRegretBounded); regret_bounded() says so from then on
  absl::StatusOr<sampler::Suggestion> Suggest(
      const StudySpec& spec,
      const std::function<sampler::AskContext(const sampler::History&)>& make_context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(propose_mutex_);
  // Only before anything was observed.
  void Replace(std::unique_ptr<sampler::Sampler> sampler)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(propose_mutex_);

  // What Suggest has said, until the spec has changed.
  std::optional<std::string> regret_bounded() const;
  void SpecChanged();

 private:
  mutable absl::Mutex propose_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::unique_ptr<sampler::Sampler> sampler_ ABSL_GUARDED_BY(propose_mutex_);
  // The history as far as the sampler has seen it. Its own, because a copy at each suggestion takes
  // longer the more trials there are.
  sampler::History observed_ ABSL_GUARDED_BY(propose_mutex_);

  // What the sampler has not seen of a trial.
  struct News {
    int64_t sequence = 0;
    std::optional<sampler::HistoryTrial> trial;  // as a whole; nullopt: it has only reported
    sampler::Reports reports;                    // since then
  };
  void Fold(std::map<TrialNumber, News> news) ABSL_EXCLUSIVE_LOCKS_REQUIRED(propose_mutex_);

  mutable absl::Mutex mutex_;
  std::map<TrialNumber, News> unobserved_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::string> regret_bounded_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
