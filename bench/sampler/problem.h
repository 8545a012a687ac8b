// What the sampler benchmarks search: a space, what a configuration comes to, what is known of it
// beforehand.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/bytes.h"
#include "common/base/random.h"
#include "tests/sampler/simulated_study.h"

namespace hpo {

struct SamplerProblem {
  // What is known of memory before a run: nothing, and nothing is asked; `need` itself; or what
  // the server learns from the runs that ended (LearnedNeed).
  enum class Memory { kUnasked, kKnown, kLearned };

  std::string name;
  SearchSpace space;
  // Deterministic but for `noise`, the stream of one run.
  std::function<sampler::SimulatedResult(const ParamMap& params, Rng& noise)> run;
  // Of losses; what regret is counted from.
  double optimum = 0.0;
  // Bytes an evaluation may use. A run that says that it used more is infeasible.
  Bytes capacity = GiB(16);
  // Bytes that a configuration needs; where it is more than its card has, the run is out of memory.
  // Empty: any card will do.
  std::function<Bytes(const ParamMap& params)> need;
  Memory memory = Memory::kUnasked;
  // Of a run on a card of speed 1, of each report where it makes any. Empty: one second.
  std::function<double(const ParamMap& params)> seconds;
};

double At(const ParamMap& params, const std::string& name);
Domain LogInt(int64_t low, int64_t high);
Domain LogFloat(double low, double high);

// `problem` as another data set might have it: every continuous parameter's optimum lies elsewhere
// by `shift`, a part of its range (values beyond an end come back from it), and losses are `scale`
// times its losses. A scale below 0 makes a problem of which only the opposite can be learned.
SamplerProblem Related(SamplerProblem problem, double shift, double scale);

// branin, hartmann6, rosenbrock5, ackley10, conditional: regret from the known optimum. mixed10:
// the ten parameters of the timings. cliff_known, cliff_learned: the optimum lies on the limit of
// memory. fleet: quality grows with width and depth, and with them memory and time
// (memory_functions.h).
//   NotFound  lists the names
absl::StatusOr<SamplerProblem> FindSamplerProblem(absl::string_view name);

struct TableSource {
  std::string folder;  // holds space.json (format hpo-table/1) and table.csv, unpacked
  // A column whose limit is the tightest of space.json's: known before the run, or measured by it.
  std::string constraint;  // empty: none
  bool known = false;
  bool reports = false;  // runs report their curve (table_curve.h); else only what they end with
};

// A published table. An evaluation returns one of the objective's columns at random, negated where
// more is better; what has no row, or another status than ok, fails.
//   InvalidArgument  names the file and what is missing or wrong there
absl::StatusOr<SamplerProblem> ReadTableProblem(const TableSource& source);

}  // namespace hpo
