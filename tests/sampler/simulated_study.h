// A study without workers for sampler tests: trials end at once, as an objective says.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "sampler/api/sampler.h"

namespace hpo::sampler {

// What a simulated trial comes to.
struct SimulatedResult {
  // nullopt: out of memory.
  SimulatedResult(std::optional<double> its_loss) : loss(its_loss) {}  // NOLINT: as a number
  SimulatedResult(double its_loss) : loss(its_loss) {}                 // NOLINT

  std::optional<double> loss;
  std::map<int64_t, double> reports;  // intermediate losses by step, the last one with the end
  bool failed = false;                // ends without a loss for another reason than memory
  bool stopped = false;               // by a pruner, without a loss
  Bytes used;                         // memory measured; 0: it was not
  std::vector<double> excesses;       // of the study's constraints
};
using SimulatedObjective = std::function<SimulatedResult(const ParamMap&)>;

// `trial` as `result` ends it on a card of `capacity`.
void EndTrial(const SimulatedResult& result, Bytes capacity, HistoryTrial& trial);

// A modelled parameter with nothing else set.
Parameter MakeParameter(const std::string& name, Domain domain);

CategoricalDomain IntChoices(std::initializer_list<int64_t> values);

// Asks, runs and tells one trial after another.
class SimulatedStudy {
 public:
  // Of the study its space, sampler, metric constraints and budget of trials count. OOM happens at
  // `capacity`.
  SimulatedStudy(const StudySpec& study, SimulatedObjective objective, Bytes capacity = GiB(16),
                 std::vector<PriorStudy> priors = {});

  // What the sampler would propose as trial `number` now; aborts the test program on an error.
  Suggestion Suggest(int64_t number) const;

  // Runs the next trial to its end.
  const HistoryTrial& RunOne();

  const std::vector<HistoryTrial>& trials() const { return trials_; }
  // Of the feasible trials.
  double best_loss() const;
  int64_t num_ooms() const;
  void set_feasibility(memory::BatchFeasibility feasibility) {
    feasibility_ = std::move(feasibility);
  }

 private:
  StudySpec study_;
  SimulatedObjective objective_;
  Bytes capacity_;
  memory::BatchFeasibility feasibility_;
  std::unique_ptr<Sampler> sampler_;
  std::vector<HistoryTrial> trials_;
};

// Middle of the sorted values; the upper one of two.
double MedianOf(std::vector<double> values);

}  // namespace hpo::sampler
