#include "bench/sampler/run.h"

#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

// Of the cards of one capacity.
struct ClassCounts {
  int64_t num_trials = 0;
  int64_t num_for_smaller = 0;  // what the next smaller cards could have run
};

struct Run {
  std::vector<double> best;  // feasible, at each number of evaluations
  int64_t num_failed = 0;
  int64_t num_out_of_memory = 0;
  int64_t num_infeasible = 0;  // ran, but took more than the capacity
  std::optional<double> reached_s;
  double idle_s = 0.0;
  std::map<Bytes, ClassCounts> classes;
};

// Counts `ended` to the class of its card.
void CountClass(const SamplerProblem& problem, const FleetTrial& ended,
                const std::vector<Card>& cards, Run& run) {
  const Bytes capacity = cards[ended.card].capacity;
  ClassCounts& counts = run.classes[capacity];
  ++counts.num_trials;
  Bytes smaller;
  for (const Card& card : cards) {
    if (card.capacity < capacity) smaller = std::max(smaller, card.capacity);
  }
  counts.num_for_smaller += problem.need && problem.need(ended.trial.params) <= smaller ? 1 : 0;
}

Run RunOnce(const SamplerProblem& problem, const RunOptions& options, uint64_t seed) {
  SimulatedFleet fleet(problem, StudyOf(problem, options, seed), options.cards,
                       RunPriors(problem, options, seed));
  Run run;
  double best = std::numeric_limits<double>::infinity();
  int64_t done = 0;
  for (const int64_t evaluations : options.evaluations) {
    for (; done < evaluations && !run.reached_s.has_value(); ++done) {
      const FleetTrial ended = fleet.RunNext();
      const sampler::HistoryTrial& trial = ended.trial;
      const Bytes capacity = options.cards[ended.card].capacity;
      const bool over = sampler::MemoryViolation(trial, capacity, MemoryPolicy::kPlan) > 0.0;
      run.num_failed += trial.state == TrialState::kFailed ? 1 : 0;
      run.num_out_of_memory += trial.prune_reason.has_value() ? 1 : 0;
      run.num_infeasible += over && !trial.losses.empty() ? 1 : 0;
      CountClass(problem, ended, options.cards, run);
      if (!over && !trial.losses.empty()) best = std::min(best, trial.losses.front());
      if (options.target.has_value() && best - problem.optimum <= *options.target) {
        run.reached_s = ended.at_s;
      }
    }
    run.best.push_back(best - problem.optimum);
  }
  run.idle_s = fleet.idle_s();
  return run;
}

nlohmann::json ToJson(const Run& run, uint64_t seed) {
  nlohmann::json classes = nlohmann::json::array();
  for (const auto& [capacity, counts] : run.classes) {
    classes.push_back({{"capacity", capacity.count},
                       {"trials", counts.num_trials},
                       {"for_smaller", counts.num_for_smaller}});
  }
  return {
      {"seed", seed},
      {"best", run.best},
      {"failed", run.num_failed},
      {"out_of_memory", run.num_out_of_memory},
      {"infeasible", run.num_infeasible},
      {"reached_s", run.reached_s.has_value() ? nlohmann::json(*run.reached_s) : nlohmann::json()},
      {"idle_s", run.idle_s},
      {"classes", classes}};
}

}  // namespace

StudySpec StudyOf(const SamplerProblem& problem, const RunOptions& options, uint64_t seed) {
  StudySpec study;
  // Hyperband deals its brackets by the name.
  study.name = absl::StrCat(problem.name, "_", seed);
  study.objectives = {{.metric = "loss", .direction = Direction::kMinimize}};
  // No trainer runs, but a study names its data.
  study.trainer.train = study.trainer.validation = "none";
  study.space = problem.space;
  study.pruner = options.pruner;
  study.budget.trials = options.budget;
  study.sampler.type = options.sampler;
  study.sampler.startup = options.startup;
  study.sampler.seed = seed;
  return study;
}

std::vector<sampler::PriorStudy> RunPriors(const SamplerProblem& problem, const RunOptions& options,
                                           uint64_t seed) {
  if (options.warm_start == 0) return {};
  constexpr uint64_t kOtherSeeds = 1'000'000;
  const SamplerProblem related = Related(problem, options.prior_shift, options.prior_scale);
  SimulatedFleet fleet(related, StudyOf(related, options, seed + kOtherSeeds), options.cards);
  sampler::PriorStudy prior{.name = "earlier", .history = {}};
  for (int64_t i = 0; i < options.warm_start; ++i) {
    const sampler::HistoryTrial trial = fleet.RunNext().trial;
    if (sampler::IsFinished(trial)) prior.history.Apply({.sequence = i, .trial = trial});
  }
  return {prior};
}

nlohmann::json RunEvaluations(const SamplerProblem& problem, const RunOptions& options,
                              uint64_t seed) {
  return ToJson(RunOnce(problem, options, seed), seed);
}

}  // namespace hpo
