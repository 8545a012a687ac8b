#include "server/studies/warm_start.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "server/trials/typed_params.h"

namespace hpo::server {
namespace {

constexpr int64_t kTrialsBetweenLooks = 1000;

std::string Words(const std::vector<Objective>& objectives) {
  return absl::StrJoin(objectives, ", ", [](std::string* out, const Objective& objective) {
    absl::StrAppend(out, Name(objective.direction), " ", objective.metric);
  });
}

bool Teaches(const sampler::HistoryTrial& trial) {
  return trial.state == TrialState::kCompleted && !trial.losses.empty() &&
         std::isfinite(trial.losses.front());
}

// `params` without what a configuration of `space` does not have in addition.
ParamMap PartOf(const SearchSpace& space, const ParamMap& params) {
  ParamMap part;
  for (const Parameter& parameter : space.parameters) {
    const auto found = params.find(parameter.name);
    if (found != params.end() && Holds(space, parameter.when, part)) part.insert(*found);
  }
  return part;
}

absl::StatusOr<ParamMap> ConfigurationIn(const SearchSpace& space, ParamMap params) {
  std::erase_if(params, [&](const auto& param) { return space.Find(param.first) == nullptr; });
  HPO_ASSIGN_OR_RETURN(const ParamMap typed, TypedParams(space, params));
  ParamMap part = PartOf(space, typed);
  HPO_RETURN_IF_ERROR(ValidateParams(space, part));
  return part;
}

absl::Status Unusable(const EarlierStudy& earlier, absl::string_view expected,
                      absl::string_view got) {
  return absl::FailedPreconditionError(absl::StrCat("warm_start: study '", earlier.spec.name,
                                                    "': expected ", expected, ", got ", got));
}

}  // namespace

absl::StatusOr<StudyPrior> ChoosePrior(const StudySpec& spec, const EarlierStudy& earlier,
                                       absl::FunctionRef<bool()> cancelled) {
  if (earlier.spec.objectives != spec.objectives) {
    return Unusable(earlier, Words(spec.objectives), Words(earlier.spec.objectives));
  }
  StudyPrior chosen{.study = earlier.spec.name};
  int64_t num_seen = 0;
  for (const auto& [number, trial] : earlier.history.trials()) {
    if (num_seen++ % kTrialsBetweenLooks == 0 && cancelled()) {
      return absl::CancelledError("the caller has left");
    }
    if (!Teaches(trial)) continue;
    const absl::Status usable = ConfigurationIn(spec.space, trial.params).status();
    if (usable.ok()) {
      chosen.trials.push_back(number);
    } else if (++chosen.num_skipped == 1) {
      chosen.why_skipped = absl::StrCat("trial #", number.value, ": ", usable.message());
    }
  }
  if (!chosen.trials.empty()) return chosen;
  if (chosen.num_skipped == 0) return Unusable(earlier, "completed trials", "none");
  return Unusable(earlier, "completed trials that are configurations of this study's space",
                  absl::StrCat("none among ", chosen.num_skipped, "; ", chosen.why_skipped));
}

absl::StatusOr<sampler::PriorStudy> ToPriorStudy(const StudySpec& spec, const EarlierStudy& earlier,
                                                 const StudyPrior& chosen,
                                                 absl::FunctionRef<bool()> cancelled) {
  sampler::PriorStudy prior{.name = chosen.study, .history = {}};
  int64_t num_seen = 0;
  for (const TrialNumber number : chosen.trials) {
    if (num_seen++ % kTrialsBetweenLooks == 0 && cancelled()) {
      return absl::CancelledError("the caller has left");
    }
    const auto found = earlier.history.trials().find(number);
    if (found == earlier.history.trials().end()) continue;
    sampler::HistoryTrial trial = found->second;
    if (earlier.spec.constraints != spec.constraints) {
      trial.violation = 0.0;
      trial.excesses.clear();
    }
    if (auto params = ConfigurationIn(spec.space, trial.params); params.ok()) {
      trial.params = *std::move(params);
      prior.history.Apply({.sequence = prior.history.sequence() + 1, .trial = std::move(trial)});
    }
  }
  return prior;
}

}  // namespace hpo::server
