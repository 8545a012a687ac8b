// What the sampler benchmarks search: a space, what a configuration comes to, what is known of it
// beforehand.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/memory/fit_decision.h"
#include "common/random.h"
#include "tests/sampler/simulated_study.h"

namespace hpo {

struct SamplerProblem {
  std::string name;
  SearchSpace space;
  // Deterministic but for `noise`, the stream of one run.
  std::function<SimulatedResult(const ParamMap& params, Rng& noise)> run;
  // Of losses; what regret is counted from.
  double optimum = 0.0;
  // Bytes an evaluation may use. Above it a run is out of memory where it says so, else infeasible.
  Bytes capacity = GiB(16);
  // Where bytes are known before the run; empty: they are met.
  BatchFeasibility feasibility;
};

// branin, hartmann6, rosenbrock5, ackley10, conditional: regret from the known optimum. mixed10:
// the ten parameters of the timings. cliff_known, cliff_learned: the optimum lies on the limit of
// memory. All as shared/bench/optuna/optuna_baseline.py defines them.
//   NotFound  lists the names
absl::StatusOr<SamplerProblem> FindSamplerProblem(absl::string_view name);

// A published table: `folder` holds space.json (format hpo-table/1) and table.csv, unpacked. An
// evaluation returns one of the objective's columns at random, negated where more is better; what
// has no row, or another status than ok, fails. `constraint`, where not empty, names a column whose
// limit is the tightest of space.json's: `known` before the run, or measured by it.
//   InvalidArgument  names the file and what is missing or wrong there
absl::StatusOr<SamplerProblem> ReadTableProblem(const std::string& folder,
                                                const std::string& constraint, bool known);

}  // namespace hpo
