// Runs a sampler on a problem with several seeds and writes what it found as one JSON object: for
// every seed the best loss after every number of evaluations asked for.
#include <time.h>

#include <iostream>
#include <limits>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "bench/sampler/problem.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

struct Options {
  std::string problem;
  std::string table;
  std::string constraint;
  bool known = false;
  std::string sampler = "tpe";
  int64_t seeds = 20;
  int64_t first_seed = 0;
  std::vector<int64_t> evaluations = {20, 50, 100, 200};
};

struct Run {
  std::vector<double> best;  // feasible, at each number of evaluations
  int64_t num_failed = 0;
  int64_t num_out_of_memory = 0;
  int64_t num_infeasible = 0;  // ran, but took more than the capacity
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
  study.sampler.type = options.sampler;
  study.sampler.seed = seed;
  return study;
}

Run RunOnce(const SamplerProblem& problem, const Options& options, uint64_t seed) {
  const StudySpec study = StudyOf(problem, options, seed);
  Rng noise(seed, /*stream=*/1);
  SimulatedStudy simulated(
      study, [&](const ParamMap& params) { return problem.run(params, noise); }, problem.capacity);
  simulated.set_feasibility(problem.feasibility);
  Run run;
  double best = std::numeric_limits<double>::infinity();
  int64_t done = 0;
  for (const int64_t evaluations : options.evaluations) {
    for (; done < evaluations; ++done) {
      const HistoryTrial& trial = simulated.RunOne();
      const bool over = MemoryViolation(trial, problem.capacity, MemoryPolicy::kPlan) > 0.0;
      run.num_failed += trial.state == TrialState::kFailed ? 1 : 0;
      run.num_out_of_memory += trial.prune_reason.has_value() ? 1 : 0;
      run.num_infeasible += over && !trial.losses.empty() ? 1 : 0;
      if (!over && !trial.losses.empty()) best = std::min(best, trial.losses.front());
    }
    run.best.push_back(best - problem.optimum);
  }
  return run;
}

absl::StatusOr<SamplerProblem> Open(const Options& options) {
  if (!options.table.empty()) {
    return ReadTableProblem(options.table, options.constraint, options.known);
  }
  return FindSamplerProblem(options.problem);
}

int Main(const Options& options) {
  const absl::StatusOr<SamplerProblem> problem = Open(options);
  const absl::Status status =
      problem.ok() ? ValidateStudy(StudyOf(*problem, options, 0)) : problem.status();
  if (!status.ok()) {
    std::cerr << "sampler_runs: " << status.message() << "\n";
    return 2;
  }
  nlohmann::json runs = nlohmann::json::array();
  const double begin = ProcessorSeconds();
  for (int64_t i = 0; i < options.seeds; ++i) {
    const Run run = RunOnce(*problem, options, static_cast<uint64_t>(options.first_seed + i));
    nlohmann::json best = nlohmann::json::array();
    for (const double value : run.best) {
      best.push_back(value < std::numeric_limits<double>::infinity() ? nlohmann::json(value)
                                                                     : nlohmann::json());
    }
    runs.push_back({{"seed", options.first_seed + i},
                    {"best", best},
                    {"failed", run.num_failed},
                    {"out_of_memory", run.num_out_of_memory},
                    {"infeasible", run.num_infeasible}});
  }
  std::cout << nlohmann::json{{"problem", problem->name},
                              {"sampler", options.sampler},
                              {"evaluations", options.evaluations},
                              {"processor_s", ProcessorSeconds() - begin},
                              {"runs", runs}}
                   .dump()
            << "\n";
  return 0;
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
  app.add_option("--seeds", options.seeds, "how many")->check(CLI::PositiveNumber);
  app.add_option("--first-seed", options.first_seed, "")->check(CLI::NonNegativeNumber);
  app.add_option("--evaluations", options.evaluations, "at which to report, ascending")
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  return hpo::Main(options);
}
