// What earlier studies say to TPE: a TPE model of each one's trials, which judges candidates with
// the study's own model as far as the study is worth (PriorWorth). What it expects of this study's
// trials is asked of a Gaussian process over its trials: a ratio of densities tells what is good
// from what is not, but does not order what lies far from both.
// Threads: Choose() and Use() may run concurrently with themselves and each other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "sampler/gp/prior_posteriors.h"
#include "sampler/priors/prior_study.h"
#include "sampler/tpe/tpe_model_cache.h"

namespace hpo::sampler {

class TpePriors {
 public:
  TpePriors(std::vector<PriorStudy> priors, MemoryPolicy policy, const TpeForm& form);

  const std::vector<PriorStudy>& studies() const { return expected_.studies(); }

  // Calls `use` with the model of the prior that orders the completed trials of `history` best, and
  // what it is worth; with nullptr where none orders them better than chance would.
  void Use(const History& history, const SearchSpace& space, Bytes capacity,
           absl::FunctionRef<void(const TpeModel*, const PriorVote&)> use) const;

 private:
  PriorVote Choose(const History& history, const SearchSpace& space, Bytes capacity) const;

  PriorPosteriors expected_;
  std::vector<std::unique_ptr<TpeModelCache>> models_;  // by study
};

}  // namespace hpo::sampler
