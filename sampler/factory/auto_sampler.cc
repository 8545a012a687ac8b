#include "sampler/factory/auto_sampler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/space/free_numbers.h"

namespace hpo::sampler {
namespace {

constexpr int64_t kMostForProcess = 500;
// The same where CMA-ES follows, has a budget of so many trials to gain from, and no more than so
// many run at once: with more, the process has not come far by then.
constexpr int64_t kMostBeforeMany = 200;
constexpr int64_t kManyTrials = 750;
constexpr int64_t kMostBeside = 16;
// Where trials that failed are this share of those that have failed or finished, TPE proposes.
constexpr double kManyFailed = 0.25;

// Of finished trials, up to which the process may propose.
int64_t MostForProcess(const History& history, const AutoTraits& study) {
  const bool many = study.suits_cma_es && study.budget_trials.value_or(0) >= kManyTrials;
  return many && NumIn(TrialState::kRunning, history) <= kMostBeside ? kMostBeforeMany
                                                                     : kMostForProcess;
}

}  // namespace

AutoChoice ChooseSampler(const History& history, const AutoTraits& study) {
  const int64_t finished = history.num_finished();
  const std::string count = absl::StrCat(finished, finished == 1 ? " trial" : " trials");
  if (study.num_objectives > 1) {
    return {Proposer::kTpe, absl::StrCat(study.num_objectives, " objectives")};
  }
  if (finished > kMostForProcess) {
    return {study.suits_cma_es ? Proposer::kCmaEs : Proposer::kTpe, count};
  }
  if (finished > MostForProcess(history, study)) {
    return {Proposer::kCmaEs, absl::StrCat(count, " of a budget of ", *study.budget_trials)};
  }
  const int64_t failed = NumIn(TrialState::kFailed, history);
  if (failed > 0 &&
      static_cast<double>(failed) >= kManyFailed * static_cast<double>(failed + finished)) {
    return {Proposer::kTpe, absl::StrCat(failed, " of ", failed + finished, " trials failed")};
  }
  return {Proposer::kProcess, count};
}

AutoSampler::AutoSampler(const StudySpec& study, std::vector<PriorStudy> priors)
    : traits_{.num_objectives = study.objectives.size(),
              .suits_cma_es = FirstNotFreeNumber(study.space) == nullptr,
              .budget_trials = {}},
      tpe_(study, priors),
      process_(study, std::move(priors)),
      cma_es_(study.sampler, study.memory.policy) {}

void AutoSampler::Observe(const HistoryEvent& event) {
  tpe_.Observe(event);
  process_.Observe(event);
  cma_es_.Observe(event);
}

absl::StatusOr<Suggestion> AutoSampler::Ask(Proposer proposer, const AutoTraits& study,
                                            const AskContext& context) const {
  switch (proposer) {
    case Proposer::kProcess:
      return process_.Suggest(context);
    case Proposer::kCmaEs:
      return cma_es_.SuggestAfter(MostForProcess(process_.history(), study), context);
    case Proposer::kTpe:
      break;
  }
  return tpe_.Suggest(context);
}

absl::StatusOr<Suggestion> AutoSampler::Suggest(const AskContext& context) const {
  AutoTraits study = traits_;
  study.budget_trials = context.budget_trials;
  const AutoChoice choice = ChooseSampler(process_.history(), study);
  absl::StatusOr<Suggestion> suggestion = Ask(choice.proposer, study, context);
  if (!suggestion.ok()) return suggestion;
  const bool from_model = suggestion->score.has_value() || choice.proposer == Proposer::kCmaEs;
  const std::string why = from_model ? absl::StrCat(" (", choice.why, ")") : "";
  suggestion->sampler = absl::StrCat("auto: ", suggestion->sampler, why);
  return suggestion;
}

}  // namespace hpo::sampler
