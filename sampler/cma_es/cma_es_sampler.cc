#include "sampler/cma_es/cma_es_sampler.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/space/free_numbers.h"
#include "sampler/cma_es/evolution_strategy.h"
#include "sampler/simple/random_sampler.h"
#include "sampler/simple/startup.h"
#include "sampler/space/candidate_pool.h"
#include "sampler/space/numeric_scale.h"
#include "sampler/space/random_configuration.h"
#include "sampler/space/random_stream.h"

namespace hpo::sampler {
namespace {

// Sizes of the rounds in which configurations are drawn until one fits that no trial has had.
constexpr int kDrawRounds[] = {1, 8, 64, 128};

struct Axis {
  const Parameter* parameter;
  NumericScale scale;
};

std::vector<Axis> AxesOf(const SearchSpace& space) {
  std::vector<Axis> axes;
  for (const Parameter& parameter : space.parameters) {
    if (IsFreeNumber(parameter)) axes.push_back({&parameter, NumericScale::Of(parameter.domain)});
  }
  return axes;
}

// Where in its cell a trial's value lies is a draw of its own. nullopt where the trial lacks an
// axis or has a value outside its domain.
std::optional<std::vector<double>> PositionOf(const std::vector<Axis>& axes,
                                              const HistoryTrial& trial, uint64_t seed) {
  Rng rng = StreamFor(seed, trial.number, StreamPurpose::kWithinCell);
  std::vector<double> position;
  for (const Axis& axis : axes) {
    const auto found = trial.params.find(axis.parameter->name);
    if (found == trial.params.end() || !Contains(axis.parameter->domain, found->second)) {
      return std::nullopt;
    }
    const Coordinate at = axis.scale.At(*AsNumber(found->second));
    const double within = rng.Uniform();
    position.push_back(axis.scale.grid() ? at.cell.low + within * (at.cell.high - at.cell.low)
                                         : at.at);
  }
  return position;
}

// nullopt: the trial teaches nothing (yet).
std::optional<Merit> MeritOf(const HistoryTrial& trial, Bytes capacity, MemoryPolicy policy) {
  if (trial.state == TrialState::kFailed) return Merit{};
  if (MemoryViolation(trial, capacity, policy) > 0.0) return Merit{};
  if (EndedByMemory(trial) || !IsFinished(trial)) return std::nullopt;
  Merit merit{Merit::Class::kCompleted, 0.0};
  if (trial.violation > 0.0) {
    merit = {Merit::Class::kInfeasible, trial.violation};
  } else if (trial.state == TrialState::kCompleted) {
    if (trial.losses.empty()) return Merit{};
    merit.loss = trial.losses.front();
  } else {
    if (trial.intermediate.empty()) return Merit{};
    merit = {Merit::Class::kStopped, trial.intermediate.rbegin()->second};
  }
  return std::isfinite(merit.loss) ? merit : Merit{};
}

// A trial that teaches, and what.
struct Lesson {
  const HistoryTrial* trial;
  Merit merit;
};

// Of all trials, by number. `num_first` receives how many of them belong to the start: those up to
// the finished one that completes it.
std::vector<Lesson> LessonsOf(const History& history, Bytes capacity, MemoryPolicy policy,
                              int64_t startup_trials, size_t& num_first) {
  std::vector<Lesson> lessons;
  int64_t finished = 0;
  for (const auto& [number, trial] : history.trials()) {
    if (const auto merit = MeritOf(trial, capacity, policy)) lessons.push_back({&trial, *merit});
    if (!IsFinished(trial) || ++finished > startup_trials) continue;
    num_first = lessons.size();
  }
  return lessons;
}

// The strategy before and after some lessons, to go on from when more come.
struct Evolution {
  SearchSpace space;
  std::vector<std::pair<TrialNumber, Merit>> told;
  size_t num_first;
  EvolutionStrategy strategy;

  bool ContinuesInto(const SearchSpace& other, const std::vector<Lesson>& lessons,
                     size_t first) const {
    return first == num_first && told.size() <= lessons.size() && space == other &&
           std::equal(told.begin(), told.end(), lessons.begin(),
                      [](const auto& before, const Lesson& now) {
                        return before.first == now.trial->number && before.second == now.merit;
                      });
  }
};

// nullopt where no trial of the start is of use.
std::optional<EvolutionStrategy> BeginFrom(const std::vector<Axis>& axes,
                                           std::span<const Lesson> first, uint64_t seed) {
  std::vector<EvaluatedPlace> start;
  for (const Lesson& lesson : first) {
    if (lesson.merit.worth == Merit::Class::kUseless) continue;
    auto position = PositionOf(axes, *lesson.trial, seed);
    if (position.has_value()) start.push_back({*std::move(position), lesson.merit});
  }
  if (start.empty()) return std::nullopt;
  return EvolutionStrategy(axes.size(), seed, std::move(start));
}

// The values at a place; the others are still to be drawn.
ParamMap ParamsAt(const std::vector<Axis>& axes, const std::vector<double>& position) {
  ParamMap params;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = axes[i];
    params.emplace(axis.parameter->name,
                   NearestValue(axis.parameter->domain, axis.scale.ValueAt(position[i])));
  }
  return params;
}

}  // namespace

class EvolutionCache {
 public:
  // The strategy after `lessons`; equal to one that learns from them at once.
  std::optional<EvolutionStrategy> After(const std::vector<Lesson>& lessons, size_t num_first,
                                         const std::vector<Axis>& axes, const SearchSpace& space,
                                         uint64_t seed) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    if (!kept_.has_value() || !kept_->ContinuesInto(space, lessons, num_first)) {
      kept_.reset();
      auto strategy = BeginFrom(axes, std::span(lessons).first(num_first), seed);
      if (!strategy.has_value()) return std::nullopt;
      kept_.emplace(Evolution{space, {}, num_first, *std::move(strategy)});
    }
    for (size_t i = kept_->told.size(); i < lessons.size(); ++i) {
      const Lesson& lesson = lessons[i];
      kept_->told.emplace_back(lesson.trial->number, lesson.merit);
      if (i < num_first) continue;
      auto position = PositionOf(axes, *lesson.trial, seed);
      if (position.has_value()) kept_->strategy.Tell({*std::move(position), lesson.merit});
    }
    return kept_->strategy;
  }

 private:
  absl::Mutex mutex_;
  std::optional<Evolution> kept_ ABSL_GUARDED_BY(mutex_);
};

CmaEsSampler::CmaEsSampler(const SamplerSpec& spec, MemoryPolicy policy)
    : spec_(spec), policy_(policy), cache_(std::make_unique<EvolutionCache>()) {}

CmaEsSampler::~CmaEsSampler() = default;

absl::StatusOr<Suggestion> CmaEsSampler::Suggest(const AskContext& context) const {
  return SuggestAfter(std::max<int64_t>(1, StartupTrials(spec_, context)), context);
}

absl::StatusOr<Suggestion> CmaEsSampler::SuggestAfter(int64_t startup_trials,
                                                      const AskContext& context) const {
  if (history_.num_finished() < startup_trials) {
    return SuggestAtStartup(context, history_, spec_, {});
  }
  size_t num_first = 0;
  const std::vector<Lesson> lessons =
      LessonsOf(history_, context.capacity, policy_, startup_trials, num_first);
  const std::vector<Axis> axes = AxesOf(context.space);
  if (axes.empty()) return SuggestAtRandom(context, history_, spec_, kNoCandidate);
  const auto strategy = cache_->After(lessons, num_first, axes, context.space, spec_.seed);
  if (!strategy.has_value()) return SuggestAtRandom(context, history_, spec_, kNoCandidate);
  Rng rng = StreamFor(spec_.seed, context.number, StreamPurpose::kCandidates);
  CandidatePool pool(context);
  const auto draw = [&] {
    return DrawConfiguration(context.space, ParamsAt(axes, strategy->Draw(rng)), rng);
  };
  std::optional<Candidate> found = DrawUntilNew(kDrawRounds, history_, draw, rng, pool);
  if (!found.has_value()) return SuggestAtRandom(context, history_, spec_, kNoCandidate);
  return Suggestion{
      .params = std::move(found->params),
      .fit = found->fit,
      .sampler = "cma-es",
      .history_sequence = history_.sequence(),
      .score = std::nullopt,
      .reason = "a draw from a normal distribution that moves towards the better trials"};
}

}  // namespace hpo::sampler
