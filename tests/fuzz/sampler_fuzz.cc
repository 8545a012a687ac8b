// Any space, any history, any seed: the suggestion of every sampler that the study may name lies in
// its domains, on their steps, satisfies its conditions, fits, and is the same twice; or the
// sampler says that there is none. With one objective or more, constraints on metrics, an earlier
// study, a start of any kind.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/space/search_space_validation.h"
#include "sampler/api/sampler.h"
#include "sampler/factory/make_sampler.h"
#include "sampler/space/effective_batch.h"
#include "sampler/space/random_configuration.h"

namespace hpo {
namespace {

constexpr size_t kMostParameters = 8;
constexpr size_t kMostTrials = 24;
constexpr const char* kSamplers[] = {"random", "tpe",  "gp",        "auto",      "qmc",
                                     "cma-es", "grid", "tpe-joint", "tpe-group", "tpe-univariate"};

double AnyNumber(FuzzedDataProvider& data) {
  constexpr double kNumbers[] = {0.0,
                                 1.0,
                                 -1.0,
                                 1e-9,
                                 std::numeric_limits<double>::max(),
                                 -std::numeric_limits<double>::max(),
                                 std::numeric_limits<double>::denorm_min(),
                                 std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()};
  if (data.ConsumeBool()) return data.PickValueInArray(kNumbers);
  return data.ConsumeFloatingPointInRange(-100.0, 100.0);
}

int64_t AnyInteger(FuzzedDataProvider& data) {
  return data.ConsumeBool() ? data.ConsumeIntegral<int8_t>() : data.ConsumeIntegral<int64_t>();
}

Domain AnyDomain(FuzzedDataProvider& data) {
  switch (data.ConsumeIntegralInRange(0, 2)) {
    case 0: {
      FloatDomain domain{.low = AnyNumber(data), .high = AnyNumber(data)};
      domain.log = data.ConsumeBool();
      if (data.ConsumeBool()) domain.step = AnyNumber(data);
      return domain;
    }
    case 1:
      return IntDomain{.low = AnyInteger(data),
                       .high = AnyInteger(data),
                       .step = data.ConsumeIntegralInRange(1, 9),
                       .log = data.ConsumeBool()};
    default: {
      CategoricalDomain domain;
      const int64_t count = data.ConsumeIntegralInRange(1, 5);
      for (int64_t i = 0; i < count; ++i) domain.choices.emplace_back(i * i);
      if (data.ConsumeBool()) domain.choices.emplace_back(Null());
      if (data.ConsumeBool()) domain.choices.emplace_back(std::string("1"));
      if (data.ConsumeBool()) domain.choices.emplace_back(0.5);
      if (data.ConsumeBool()) domain.choices.emplace_back(true);
      return domain;
    }
  }
}

// A condition on one of the parameters before; nullopt where there is no choice among them.
std::optional<Condition> AnyCondition(const SearchSpace& space, FuzzedDataProvider& data) {
  if (space.parameters.empty()) return std::nullopt;
  const size_t parent = data.ConsumeIntegralInRange<size_t>(0, space.parameters.size() - 1);
  const Parameter& parameter = space.parameters[parent];
  const auto* choices = std::get_if<CategoricalDomain>(&parameter.domain);
  if (choices == nullptr) return std::nullopt;
  const size_t choice = data.ConsumeIntegralInRange<size_t>(0, choices->choices.size() - 1);
  return Condition{parameter.name, {choices->choices[choice]}};
}

Domain FewPositiveIntegers(FuzzedDataProvider& data) {
  const int64_t low = data.ConsumeIntegralInRange(1, 9);
  return IntDomain{.low = low,
                   .high = low + data.ConsumeIntegralInRange(0, 70),
                   .step = data.ConsumeIntegralInRange(1, 9)};
}

// Parameters that the rules of study files refuse are left out.
SearchSpace AnySpace(FuzzedDataProvider& data) {
  SearchSpace space;
  const auto keep_if_valid = [&space](auto& list, auto entry) {
    list.push_back(std::move(entry));
    if (!ValidateSpace(space).ok()) list.pop_back();
  };
  if (data.ConsumeBool()) {
    for (const char* name : {kBatchSizeParameter, kGradAccumParameter}) {
      Parameter parameter{.name = name, .domain = FewPositiveIntegers(data)};
      keep_if_valid(space.parameters, parameter);
    }
  }
  const size_t count = data.ConsumeIntegralInRange<size_t>(0, kMostParameters);
  for (size_t i = 0; i < count; ++i) {
    Parameter parameter{.name = absl::StrCat("p", i), .domain = AnyDomain(data)};
    parameter.modelled = data.ConsumeIntegralInRange(0, 7) != 0;
    const std::optional<Condition> condition = AnyCondition(space, data);
    if (condition.has_value() && data.ConsumeBool()) parameter.when = {*condition};
    keep_if_valid(space.parameters, parameter);
    const bool kept = !space.parameters.empty() && space.parameters.back().name == parameter.name;
    if (!kept || !condition.has_value() || !data.ConsumeBool()) continue;
    keep_if_valid(space.narrowings, Narrowing{{*condition}, parameter.name, AnyDomain(data)});
  }
  return space;
}

// Mostly a configuration of `space`, sometimes one that it never had; no parameter was ever NaN.
ParamMap AnyParams(const SearchSpace& space, FuzzedDataProvider& data) {
  Rng rng(data.ConsumeIntegral<uint8_t>(), 0);
  ParamMap params = sampler::DrawConfiguration(space, {}, rng).value_or(ParamMap{});
  if (data.ConsumeIntegralInRange(0, 3) == 0) {
    const double number = AnyNumber(data);
    if (!std::isnan(number)) params["p0"] = number;
  }
  if (data.ConsumeIntegralInRange(0, 7) == 0) params["p1"] = std::string("text");
  if (data.ConsumeIntegralInRange(0, 7) == 0) params.erase("p2");
  return params;
}

std::vector<double> AnyLosses(size_t num_objectives, FuzzedDataProvider& data) {
  std::vector<double> losses;
  while (losses.size() < num_objectives) losses.push_back(AnyNumber(data));
  return losses;
}

// What a completed trial of `study` is beyond its constraints.
void AddExcesses(const StudySpec& study, FuzzedDataProvider& data, sampler::HistoryTrial& trial) {
  while (trial.excesses.size() < study.constraints.size()) {
    const double excess = AnyNumber(data);
    // What was not reported.
    trial.excesses.push_back(std::isnan(excess) ? std::numeric_limits<double>::infinity() : excess);
    trial.violation += std::max(trial.excesses.back(), 0.0);
  }
}

sampler::HistoryTrial AnyTrial(const StudySpec& study, int64_t number, FuzzedDataProvider& data) {
  constexpr TrialState kStates[] = {
      TrialState::kQueued, TrialState::kRunning, TrialState::kCompleted, TrialState::kCompleted,
      TrialState::kPruned, TrialState::kFailed,  TrialState::kCancelled};
  constexpr PruneReason kReasons[] = {PruneReason::kPruner, PruneReason::kOutOfMemory,
                                      PruneReason::kPredictedOutOfMemory,
                                      PruneReason::kHostOutOfMemory};
  sampler::HistoryTrial trial{.number = TrialNumber{number},
                              .params = AnyParams(study.space, data)};
  trial.state = data.PickValueInArray(kStates);
  if (trial.state == TrialState::kCompleted) {
    trial.losses = AnyLosses(study.objectives.size(), data);
    AddExcesses(study, data, trial);
  }
  if (trial.state == TrialState::kPruned) trial.prune_reason = data.PickValueInArray(kReasons);
  if (data.ConsumeBool()) trial.intermediate.Add(data.ConsumeIntegral<int8_t>(), AnyNumber(data));
  if (data.ConsumeBool()) {
    const Bytes bytes = MiB(data.ConsumeIntegralInRange(0, 4096));
    trial.memory = {{.bytes = bytes, .censored = data.ConsumeBool(), .limit = GiB(2)}};
  }
  return trial;
}

// An earlier study of the same space.
sampler::PriorStudy AnyPrior(const SearchSpace& space, FuzzedDataProvider& data) {
  sampler::PriorStudy prior{.name = "earlier", .history = {}};
  const int64_t count = data.ConsumeIntegralInRange(0, 12);
  for (int64_t i = 0; i < count; ++i) {
    Rng rng(data.ConsumeIntegral<uint8_t>(), 0);
    const absl::StatusOr<ParamMap> params = sampler::DrawConfiguration(space, {}, rng);
    if (!params.ok()) break;
    sampler::HistoryTrial trial{.number = TrialNumber{i}, .params = *params};
    trial.state = TrialState::kCompleted;
    trial.losses = AnyLosses(1, data);
    prior.history.Apply({.sequence = i + 1, .trial = trial});
  }
  return prior;
}

// Refuses about one configuration in `one_in`, always the same ones.
memory::BatchFeasibility AnyFeasibility(uint64_t one_in) {
  return [one_in](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      uint64_t hash = 14695981039346656037u;
      for (const char c : FormatParams(params))
        hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
      fits.push_back(
          {.fits = hash % one_in != 0, .needed = MiB(static_cast<int64_t>(hash % 4096))});
    }
    return fits;
  };
}

absl::StatusOr<sampler::Suggestion> Ask(const StudySpec& study,
                                        const std::vector<sampler::PriorStudy>& priors,
                                        const std::vector<sampler::HistoryTrial>& trials,
                                        const sampler::AskContext& context) {
  const std::unique_ptr<sampler::Sampler> sampler = sampler::MakeSampler(study, priors);
  int64_t sequence = 0;
  for (const sampler::HistoryTrial& trial : trials) sampler->Observe({++sequence, trial});
  absl::StatusOr<sampler::Suggestion> first = sampler->Suggest(context);
  const absl::StatusOr<sampler::Suggestion> again = sampler->Suggest(context);
  HPO_CHECK(first.status() == again.status());
  HPO_CHECK(!first.ok() || (first->params == again->params && first->score == again->score));
  return first;
}

void Check(const StudySpec& study, const sampler::AskContext& context,
           const absl::StatusOr<sampler::Suggestion>& suggestion) {
  if (absl::IsOutOfRange(suggestion.status())) {
    HPO_CHECK(study.sampler.type == "grid" || context.repetition == sampler::Repetition::kNever);
    return;
  }
  if (!suggestion.ok()) {
    HPO_CHECK(absl::IsFailedPrecondition(suggestion.status()));
    HPO_CHECK(context.feasibility || !context.space.narrowings.empty());
    return;
  }
  HPO_CHECK(ValidateParams(context.space, suggestion->params).ok());
  if (!context.feasibility) return;
  HPO_CHECK(context.feasibility({&suggestion->params, 1}).front().fits);
}

StudySpec AnyStudy(FuzzedDataProvider& data) {
  StudySpec study;
  study.name = "any";
  study.trainer.train = study.trainer.validation = "none";
  study.sampler.seed = data.ConsumeIntegral<uint64_t>();
  study.sampler.startup_trials = data.ConsumeIntegralInRange(0, 10);
  if (data.ConsumeBool()) study.sampler.startup = "sobol";
  if (data.ConsumeBool()) study.memory.policy = MemoryPolicy::kStrict;
  const int64_t num_objectives = data.ConsumeBool() ? 1 : data.ConsumeIntegralInRange(2, 4);
  for (int64_t i = 0; i < num_objectives; ++i) {
    study.objectives.push_back({.metric = absl::StrCat("m", i)});
  }
  const int64_t num_constraints = data.ConsumeIntegralInRange(0, 2);
  for (int64_t i = 0; i < num_constraints; ++i) {
    study.constraints.push_back({.metric = absl::StrCat("c", i), .at_most = 1.0});
  }
  study.space = AnySpace(data);
  return study;
}

// Leaves out what the study may not have: an earlier one, or this sampler.
void CheckSampler(StudySpec study, std::vector<sampler::PriorStudy> priors,
                  const std::vector<sampler::HistoryTrial>& trials,
                  const sampler::AskContext& context) {
  for (const sampler::PriorStudy& prior : priors) study.warm_start.push_back(prior.name);
  if (!ValidateStudy(study).ok()) {
    study.warm_start.clear();
    priors.clear();
  }
  if (!ValidateStudy(study).ok()) return;
  const absl::StatusOr<sampler::Suggestion> suggestion = Ask(study, priors, trials, context);
  Check(study, context, suggestion);
  const absl::StatusOr<sampler::Suggestion> rebuilt = Ask(study, priors, trials, context);
  HPO_CHECK(suggestion.status() == rebuilt.status());
  HPO_CHECK(!suggestion.ok() || suggestion->params == rebuilt->params);
}

void CheckSamplers(FuzzedDataProvider& data) {
  StudySpec study = AnyStudy(data);
  sampler::AskContext context{.space = study.space, .capacity = GiB(2)};
  if (data.ConsumeBool()) context.feasibility = AnyFeasibility(data.ConsumeIntegralInRange(1, 9));
  std::vector<sampler::PriorStudy> priors;
  if (data.ConsumeBool()) priors.push_back(AnyPrior(study.space, data));
  std::vector<sampler::HistoryTrial> trials;
  const size_t count = data.ConsumeIntegralInRange<size_t>(0, kMostTrials);
  while (trials.size() < count) {
    trials.push_back(AnyTrial(study, static_cast<int64_t>(trials.size()), data));
  }
  context.number = TrialNumber{static_cast<int64_t>(trials.size())};
  if (data.ConsumeBool()) context.repetition = sampler::Repetition::kWhereAllTried;
  for (const char* type : kSamplers) {
    study.sampler.type = type;
    CheckSampler(study, priors, trials, context);
  }
}

}  // namespace
}  // namespace hpo

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  FuzzedDataProvider data(bytes, size);
  hpo::CheckSamplers(data);
  return 0;
}
