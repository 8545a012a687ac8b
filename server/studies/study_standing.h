// Whether a study goes on: pure functions of its history and of what is open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/study/study.h"
#include "sampler/api/failures.h"
#include "sampler/api/history.h"
#include "server/trials/open_trials.h"

namespace hpo::server {

// Whether a study goes on, at one moment.
struct StudyStanding {
  StudyOrder order = StudyOrder::kRun;
  TrialNumber failures_from;  // as StudyRecord's
  // Why failures have ended it (sampler/api/failures.h); nullopt: they have not.
  std::optional<sampler::TooManyFailures> failure;
  // Which trial has reached budget.target, and how to go on; empty: none has, or there is no
  // target.
  std::string target_reached;
  // Why no more trials are proposed although trials and time are left: the target, or
  // sampler/factory/termination.h. Of one whose budget is used up by failures alone: that. Empty
  // otherwise.
  std::string termination;
  // Queued trials may be handed out.
  bool hands_out = false;
  // One more trial may be proposed.
  bool budget_left = false;
  // Trials that further workers could be given now: those that are queued, and those that the
  // budget still allows; nullopt: as many as there are workers, as no number bounds the study.
  std::optional<int64_t> runnable = 0;
  // Nothing runs, and nothing more will: budget used and nothing queued; or stopped, failed, its
  // target reached or its wall clock used up, which leave what is queued where it is.
  bool finished = false;
};

// What a study's trials say about going on. Texts are empty where there is nothing to say.
struct HistoryVerdict {
  std::string termination;     // WhyTerminate
  std::string target_reached;  // WhyTargetReached
  std::optional<sampler::TooManyFailures> failure;
  bool all_failed = false;
};

// O(trials).
HistoryVerdict JudgeHistory(const sampler::History& history, const StudySpec& spec,
                            TrialNumber failures_from);

// What a standing depends on apart from the history.
struct StudySituation {
  StudyOrder order = StudyOrder::kRun;
  TrialNumber failures_from;
  int64_t num_budgeted = 0;  // as StudyRecord's
  OpenTrials::Load open;
  std::string regret_bounded;  // StudySampler's; empty: nothing
};

StudyStanding StandingOf(const StudySpec& spec, const HistoryVerdict& verdict,
                         const StudySituation& situation);

}  // namespace hpo::server
