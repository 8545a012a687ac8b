#include "sampler/auto_sampler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/free_numbers.h"

namespace hpo {
namespace {

constexpr int64_t kMostForProcess = 500;
constexpr int64_t kPatience = 20;

// How many finished trials have a higher number than the last that improved on all before it.
int64_t FinishedSinceImprovement(const History& history) {
  double best = std::numeric_limits<double>::infinity();
  int64_t since = 0;
  for (const auto& [number, trial] : history.trials()) {
    if (!IsFinished(trial)) continue;
    ++since;
    if (trial.losses.empty() || !(trial.losses.front() < best)) continue;
    best = trial.losses.front();
    since = 0;
  }
  return since;
}

// Where trials that failed are this share of those that have failed or finished, TPE speaks.
constexpr double kManyFailed = 0.25;

int64_t NumFailed(const History& history) {
  return std::count_if(history.trials().begin(), history.trials().end(),
                       [](const auto& entry) { return entry.second.state == TrialState::kFailed; });
}

}  // namespace

AutoChoice ChooseSampler(const History& history, const AutoTraits& study, TrialNumber number) {
  const int64_t finished = history.num_finished();
  const std::string count = absl::StrCat(finished, finished == 1 ? " trial" : " trials");
  if (study.num_objectives > 1) {
    return {Speaker::kTpe, absl::StrCat(study.num_objectives, " objectives")};
  }
  if (finished > kMostForProcess && study.suits_cma_es) return {Speaker::kCmaEs, count};
  if (finished > kMostForProcess) return {Speaker::kTpe, count};
  const int64_t failed = NumFailed(history);
  if (failed > 0 &&
      static_cast<double>(failed) >= kManyFailed * static_cast<double>(failed + finished)) {
    return {Speaker::kTpe, absl::StrCat(failed, " of ", failed + finished, " trials failed")};
  }
  const int64_t since = FinishedSinceImprovement(history);
  if (since < kPatience) return {Speaker::kProcess, count};
  return {number.value % 2 == 0 ? Speaker::kProcess : Speaker::kTpe,
          absl::StrCat("in turns, no gain in ", since, " trials")};
}

AutoSampler::AutoSampler(const StudySpec& study, std::vector<PriorStudy> priors)
    : traits_{study.objectives.size(), FirstNotFreeNumber(study.space) == nullptr},
      tpe_(study, priors),
      process_(study, std::move(priors)),
      cma_es_(study.sampler, kMostForProcess, study.memory.policy) {}

void AutoSampler::Observe(const HistoryEvent& event) {
  tpe_.Observe(event);
  process_.Observe(event);
  cma_es_.Observe(event);
}

const Sampler& AutoSampler::At(Speaker speaker) const {
  switch (speaker) {
    case Speaker::kProcess:
      return process_;
    case Speaker::kCmaEs:
      return cma_es_;
    case Speaker::kTpe:
      break;
  }
  return tpe_;
}

absl::StatusOr<Suggestion> AutoSampler::Suggest(const AskContext& context) const {
  const AutoChoice choice = ChooseSampler(process_.history(), traits_, context.number);
  absl::StatusOr<Suggestion> suggestion = At(choice.speaker).Suggest(context);
  if (!suggestion.ok()) return suggestion;
  const bool from_model = suggestion->score.has_value() || choice.speaker == Speaker::kCmaEs;
  const std::string why = from_model ? absl::StrCat(" (", choice.why, ")") : "";
  suggestion->sampler = absl::StrCat("auto: ", suggestion->sampler, why);
  return suggestion;
}

}  // namespace hpo
