// Any space, any history, any seed: every sampler's suggestion lies in its domains, on their steps,
// satisfies its conditions, fits, and is the same twice; or the sampler says that there is none.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "sampler/random_configuration.h"
#include "sampler/sampler.h"

namespace hpo {
namespace {

constexpr size_t kMostParameters = 8;
constexpr size_t kMostTrials = 24;
constexpr const char* kSamplers[] = {"random", "tpe", "gp", "auto", "qmc", "cma-es"};

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

// Parameters that the rules of study files refuse are left out.
SearchSpace AnySpace(FuzzedDataProvider& data) {
  SearchSpace space;
  const auto keep_if_valid = [&space](auto& list, auto entry) {
    list.push_back(std::move(entry));
    if (!ValidateSpace(space).ok()) list.pop_back();
  };
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

// Mostly a configuration of `space`, sometimes one that it never had.
ParamMap AnyParams(const SearchSpace& space, FuzzedDataProvider& data) {
  Rng rng(data.ConsumeIntegral<uint8_t>(), 0);
  ParamMap params = DrawConfiguration(space, {}, rng).value_or(ParamMap{});
  if (data.ConsumeIntegralInRange(0, 3) == 0) params["p0"] = AnyNumber(data);
  if (data.ConsumeIntegralInRange(0, 7) == 0) params["p1"] = std::string("text");
  if (data.ConsumeIntegralInRange(0, 7) == 0) params.erase("p2");
  return params;
}

HistoryTrial AnyTrial(const SearchSpace& space, int64_t number, FuzzedDataProvider& data) {
  constexpr TrialState kStates[] = {
      TrialState::kQueued, TrialState::kRunning, TrialState::kCompleted, TrialState::kCompleted,
      TrialState::kPruned, TrialState::kFailed,  TrialState::kCancelled};
  constexpr PruneReason kReasons[] = {PruneReason::kPruner, PruneReason::kOutOfMemory,
                                      PruneReason::kPredictedOutOfMemory,
                                      PruneReason::kHostOutOfMemory};
  HistoryTrial trial{.number = TrialNumber{number}, .params = AnyParams(space, data)};
  trial.state = data.PickValueInArray(kStates);
  if (trial.state == TrialState::kCompleted) trial.losses = {AnyNumber(data)};
  if (trial.state == TrialState::kPruned) trial.prune_reason = data.PickValueInArray(kReasons);
  if (data.ConsumeBool()) trial.intermediate[data.ConsumeIntegral<int8_t>()] = AnyNumber(data);
  if (data.ConsumeBool()) {
    const Bytes bytes = MiB(data.ConsumeIntegralInRange(0, 4096));
    trial.memory = {{.bytes = bytes, .censored = data.ConsumeBool(), .limit = GiB(2)}};
  }
  return trial;
}

// Refuses about one configuration in `one_in`, always the same ones.
BatchFeasibility AnyFeasibility(uint64_t one_in) {
  return [one_in](std::span<const ParamMap> candidates) {
    std::vector<Fit> fits;
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

absl::StatusOr<Suggestion> Ask(const StudySpec& study, const std::vector<HistoryTrial>& trials,
                               const AskContext& context) {
  const std::unique_ptr<Sampler> sampler = MakeSampler(study);
  int64_t sequence = 0;
  for (const HistoryTrial& trial : trials) sampler->Observe({++sequence, trial});
  absl::StatusOr<Suggestion> first = sampler->Suggest(context);
  const absl::StatusOr<Suggestion> again = sampler->Suggest(context);
  HPO_CHECK(first.status() == again.status());
  HPO_CHECK(!first.ok() || (first->params == again->params && first->score == again->score));
  return first;
}

void Check(const AskContext& context, const absl::StatusOr<Suggestion>& suggestion) {
  if (!suggestion.ok()) {
    HPO_CHECK(absl::IsFailedPrecondition(suggestion.status()));
    HPO_CHECK(context.feasibility || !context.space.narrowings.empty());
    return;
  }
  HPO_CHECK(ValidateParams(context.space, suggestion->params).ok());
  if (!context.feasibility) return;
  HPO_CHECK(context.feasibility({&suggestion->params, 1}).front().fits);
}

void CheckSamplers(FuzzedDataProvider& data) {
  StudySpec study;
  study.sampler.seed = data.ConsumeIntegral<uint64_t>();
  study.sampler.startup_trials = data.ConsumeIntegralInRange(0, 10);
  study.space = AnySpace(data);
  AskContext context{.space = study.space, .capacity = GiB(2)};
  if (data.ConsumeBool()) context.feasibility = AnyFeasibility(data.ConsumeIntegralInRange(1, 9));
  std::vector<HistoryTrial> trials;
  const size_t count = data.ConsumeIntegralInRange<size_t>(0, kMostTrials);
  while (trials.size() < count) {
    trials.push_back(AnyTrial(study.space, static_cast<int64_t>(trials.size()), data));
  }
  context.number = TrialNumber{static_cast<int64_t>(trials.size())};
  for (const char* type : kSamplers) {
    study.sampler.type = type;
    const absl::StatusOr<Suggestion> suggestion = Ask(study, trials, context);
    Check(context, suggestion);
    const absl::StatusOr<Suggestion> rebuilt = Ask(study, trials, context);
    HPO_CHECK(suggestion.status() == rebuilt.status());
    HPO_CHECK(!suggestion.ok() || suggestion->params == rebuilt->params);
  }
}

}  // namespace
}  // namespace hpo

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  FuzzedDataProvider data(bytes, size);
  hpo::CheckSamplers(data);
  return 0;
}
