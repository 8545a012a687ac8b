// Proposes configurations.
//
// State is a fold of events: a sampler rebuilt from the stored trials proposes what the running one
// would have. Suggest is pure: same state and context, same suggestion, on every machine.
// Threads: Observe needs exclusive access; Suggest may run concurrently with itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/space/search_space.h"
#include "common/study/study.h"
#include "memory/plan/fit_decision.h"
#include "sampler/api/history.h"

namespace hpo::sampler {

// When a configuration may be proposed that a trial has had.
enum class Repetition {
  kNever,          // where all has been tried the study ends
  kWhereAllTried,  // others come first
  kAlways,         // trials have parameters beside those of the space
};

// Everything a suggestion depends on, apart from the history.
struct AskContext {
  TrialNumber number;  // the trial to propose; with the study's seed it keys the random stream
  // The study's space, with what the asking worker lacks taken out of model.name.
  SearchSpace space;
  Bytes capacity;                        // quantised, of the asking worker
  memory::BatchFeasibility feasibility;  // empty: everything fits
  // How many trials the study may have in all, as its budget stands; nullopt: any number.
  std::optional<int64_t> budget_trials = std::nullopt;
  Repetition repetition = Repetition::kNever;
};

struct Suggestion {
  ParamMap params;
  memory::Fit fit;      // of `params` at the asking capacity
  std::string sampler;  // which one proposed it, and why: "tpe", "auto: gp (34 trials)"
  int64_t history_sequence = 0;
  // What the model expects of it: a log density ratio (tpe), or a log expected improvement, in
  // deviations of the losses (gp). Larger is better; nullopt without a model.
  std::optional<double> score;
  // What decided for it, for people: "expects to gain 0.0031 on the best". No new line, may be
  // empty.
  std::string reason;
  // Repetition::kWhereAllTried: whether it repeats a trial's configuration, as nothing is left.
  bool all_tried = false;
};

class Sampler {
 public:
  virtual ~Sampler() = default;

  // Folds one event into the state. Events come in order of sequence, each once.
  virtual void Observe(const HistoryEvent& event) = 0;

  // A configuration of `context.space`, inside every allowed domain, that fits where one was found.
  //   FailedPrecondition  no configuration exists (narrowings leave nothing), or none that fits was
  //                       found in bounded rounds; the message names the least violating one's need
  //   OutOfRange          every configuration of context.space that fits has been tried, and
  //                       context.repetition is kNever, or the sampler is a grid
  virtual absl::StatusOr<Suggestion> Suggest(const AskContext& context) const = 0;
};

// An earlier study of the same space (prior_study.h): its finished trials, each a configuration of
// the new study's space.
struct PriorStudy {
  std::string name;
  History history;
};

}  // namespace hpo::sampler
