// Runs a sampler on a problem with several seeds and writes what it found as one JSON object: for
// every seed the best loss after every number of evaluations asked for, and when a target was
// reached.
#include <time.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/sampler/problem.h"
#include "bench/sampler/simulated_fleet.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

struct Options {
  std::string problem;
  std::string table;
  std::string constraint;
  bool known = false;
  std::string sampler = SamplerSpec().type;
  std::string startup = SamplerSpec().startup;
  int64_t seeds = 20;
  int64_t first_seed = 0;
  std::vector<int64_t> evaluations = {20, 50, 100, 200};
  int64_t in_flight = 1;
  std::vector<std::string> card_words;
  std::vector<Card> cards;  // as card_words say
  std::optional<double> target;
  std::optional<int64_t> budget;
  // An earlier study of so many trials; 0: none.
  int64_t warm_start = 0;
  double prior_shift = 0.0;
  double prior_scale = 1.0;
};

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

double ProcessorSeconds() {
  timespec now{};
  HPO_CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

StudySpec StudyOf(const SamplerProblem& problem, const Options& options, uint64_t seed) {
  StudySpec study;
  study.name = problem.name;
  study.objectives = {{.metric = "loss", .direction = Direction::kMinimize}};
  // No trainer runs, but a study names its data.
  study.trainer.train = study.trainer.validation = "none";
  study.space = problem.space;
  study.budget.trials = options.budget;
  study.sampler.type = options.sampler;
  study.sampler.startup = options.startup;
  study.sampler.seed = seed;
  return study;
}

// "24GiB" or "24GiB:4", the second with a speed.
absl::StatusOr<Card> ParseCard(const std::string& word) {
  const std::vector<std::string> parts = absl::StrSplit(word, ':');
  Card card;
  HPO_ASSIGN_OR_RETURN(card.capacity, ParseBytes(parts.front()));
  const bool valid =
      parts.size() == 1 || (parts.size() == 2 && absl::SimpleAtod(parts[1], &card.speed));
  if (valid && card.capacity > Bytes{} && card.speed > 0.0) return card;
  return absl::InvalidArgumentError(
      absl::StrCat("--cards: expected CAPACITY or CAPACITY:SPEED, both above 0, got ", word));
}

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

// The finished trials of an earlier study of a related problem, of another seed.
std::vector<PriorStudy> RunPriors(const SamplerProblem& problem, const Options& options,
                                  uint64_t seed) {
  if (options.warm_start == 0) return {};
  constexpr uint64_t kOtherSeeds = 1'000'000;
  const SamplerProblem related = Related(problem, options.prior_shift, options.prior_scale);
  SimulatedFleet fleet(related, StudyOf(related, options, seed + kOtherSeeds), options.cards);
  PriorStudy prior{.name = "earlier", .history = {}};
  for (int64_t i = 0; i < options.warm_start; ++i) {
    const HistoryTrial trial = fleet.RunNext().trial;
    if (IsFinished(trial)) prior.history.Apply({.sequence = i, .trial = trial});
  }
  return {prior};
}

Run RunOnce(const SamplerProblem& problem, const Options& options, uint64_t seed) {
  SimulatedFleet fleet(problem, StudyOf(problem, options, seed), options.cards,
                       RunPriors(problem, options, seed));
  Run run;
  double best = std::numeric_limits<double>::infinity();
  int64_t done = 0;
  for (const int64_t evaluations : options.evaluations) {
    for (; done < evaluations && !run.reached_s.has_value(); ++done) {
      const FleetTrial ended = fleet.RunNext();
      const HistoryTrial& trial = ended.trial;
      const Bytes capacity = options.cards[ended.card].capacity;
      const bool over = MemoryViolation(trial, capacity, MemoryPolicy::kPlan) > 0.0;
      run.num_failed += trial.state == TrialState::kFailed ? 1 : 0;
      run.num_out_of_memory += trial.prune_reason.has_value() ? 1 : 0;
      run.num_infeasible += over && !trial.losses.empty() ? 1 : 0;
      CountClass(problem, ended, options.cards, run);
      if (!over && !trial.losses.empty()) best = std::min(best, trial.losses.front());
      if (options.target.has_value() && best - problem.optimum <= *options.target) {
        run.reached_s = ended.ended_s;
      }
    }
    run.best.push_back(best - problem.optimum);
  }
  run.idle_s = fleet.idle_s();
  return run;
}

nlohmann::json ToJson(const Run& run, int64_t seed) {
  nlohmann::json best = nlohmann::json::array();
  for (const double value : run.best) {
    best.push_back(value < std::numeric_limits<double>::infinity() ? nlohmann::json(value)
                                                                   : nlohmann::json());
  }
  nlohmann::json classes = nlohmann::json::array();
  for (const auto& [capacity, counts] : run.classes) {
    classes.push_back({{"capacity", capacity.count},
                       {"trials", counts.num_trials},
                       {"for_smaller", counts.num_for_smaller}});
  }
  return {
      {"seed", seed},
      {"best", best},
      {"failed", run.num_failed},
      {"out_of_memory", run.num_out_of_memory},
      {"infeasible", run.num_infeasible},
      {"reached_s", run.reached_s.has_value() ? nlohmann::json(*run.reached_s) : nlohmann::json()},
      {"idle_s", run.idle_s},
      {"classes", classes}};
}

absl::StatusOr<SamplerProblem> Open(const Options& options) {
  if (!options.table.empty()) {
    return ReadTableProblem(options.table, options.constraint, options.known);
  }
  return FindSamplerProblem(options.problem);
}

// Fills options.cards: those named, or as many of the problem's capacity as are in flight.
absl::Status ChooseCards(const SamplerProblem& problem, Options& options) {
  for (const std::string& word : options.card_words) {
    HPO_ASSIGN_OR_RETURN(const Card card, ParseCard(word));
    options.cards.push_back(card);
  }
  if (!options.cards.empty() && problem.memory == SamplerProblem::Memory::kLearned) {
    return absl::InvalidArgumentError("--cards: where memory is learned, all have its capacity");
  }
  if (options.cards.empty()) {
    options.cards.assign(static_cast<size_t>(options.in_flight), Card{problem.capacity});
  }
  return absl::OkStatus();
}

absl::Status Main(Options options) {
  HPO_ASSIGN_OR_RETURN(const SamplerProblem problem, Open(options));
  HPO_RETURN_IF_ERROR(ValidateStudy(StudyOf(problem, options, 0)));
  HPO_RETURN_IF_ERROR(ChooseCards(problem, options));
  nlohmann::json runs = nlohmann::json::array();
  const double begin = ProcessorSeconds();
  for (int64_t seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed) {
    runs.push_back(ToJson(RunOnce(problem, options, static_cast<uint64_t>(seed)), seed));
  }
  std::cout << nlohmann::json{{"problem", problem.name},
                              {"sampler", options.sampler},
                              {"evaluations", options.evaluations},
                              {"processor_s", ProcessorSeconds() - begin},
                              {"runs", runs}}
                   .dump()
            << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace hpo

int main(int argc, char** argv) {
  hpo::Options options;
  CLI::App app("Runs a sampler on a problem; writes one JSON object");
  auto* problem = app.add_option("--problem", options.problem, "a function by name");
  auto* table = app.add_option("--table", options.table, "a folder with space.json and table.csv");
  problem->excludes(table);
  app.add_option("--constraint", options.constraint, "a column of the table that has a limit")
      ->needs(table);
  app.add_flag("--known", options.known, "the constraint is known before a run");
  app.add_option("--sampler", options.sampler, "as sampler.type of a study");
  app.add_option("--startup", options.startup, "as sampler.startup of a study");
  app.add_option("--seeds", options.seeds, "how many")->check(CLI::PositiveNumber);
  app.add_option("--first-seed", options.first_seed, "")->check(CLI::NonNegativeNumber);
  app.add_option("--evaluations", options.evaluations, "at which to report, ascending")
      ->delimiter(',');
  auto* in_flight =
      app.add_option("--in-flight", options.in_flight, "trials at a time, on equal cards");
  in_flight->check(CLI::PositiveNumber);
  app.add_option("--cards", options.card_words, "CAPACITY or CAPACITY:SPEED of each card")
      ->delimiter(',')
      ->excludes(in_flight);
  app.add_option("--warm-start", options.warm_start, "trials of an earlier, related study")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--prior-shift", options.prior_shift, "of its optimum, as a part of the ranges");
  app.add_option("--prior-scale", options.prior_scale, "of its losses; below 0: misleading");
  app.add_option("--budget", options.budget, "trials that samplers are told the study may have")
      ->check(CLI::PositiveNumber);
  app.add_option("--target", options.target, "the regret at which a run ends");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = hpo::Main(options);
  if (status.ok()) return 0;
  std::cerr << "sampler_runs: " << status.message() << "\n";
  return 2;
}
