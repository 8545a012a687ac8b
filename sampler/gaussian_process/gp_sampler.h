// Bayesian optimisation by a Gaussian process: Matern 5/2 with a length scale per axis over mixed
// and conditional inputs, expected improvement in logarithms, and memory as a constraint of its
// own. Best where trials are few and the objective is smooth.
//
// Quality: completed trials after a power transformation of their losses; trials under way as
// fantasies. Memory, known: only configurations that fit are walked through. Memory, learned, and
// failures: a process each over labels is a barrier around what is likely to be lost. What a trial
// has had already is not proposed again.
// Kernel parameters are fitted to the first n trials by number, n being the last of a series of
// fixed counts (FitPoint), from the prior's centre: a function of the history alone. Fits and
// factors are kept between calls where the trials that they are of have not changed.
// The parts: training_data.h, loss_scale.h, input_space.h, hyperparameters.h, posterior.h,
// acquisition.h, acquisition_search.h. One objective (ValidateStudy).
#pragma once

#include <cstddef>
#include <memory>

#include "sampler/sampler.h"

namespace hpo {

class SurrogateCache;

// How many of `count` observations the kernel parameters are fitted to: all up to 32, then the last
// multiple of a power of two that is about a sixteenth of them.
size_t FitPoint(size_t count);

// Threads: as Sampler.
class GpSampler final : public Sampler {
 public:
  // `policy` says what a trial's memory use means for smaller cards (MemoryViolation).
  GpSampler(const SamplerSpec& spec, MemoryPolicy policy);
  ~GpSampler() override;

  void Observe(const HistoryEvent& event) override { history_.Apply(event); }
  absl::StatusOr<Suggestion> Suggest(const AskContext& context) const override;

  const History& history() const { return history_; }

 private:
  SamplerSpec spec_;
  MemoryPolicy policy_;
  History history_;
  std::unique_ptr<SurrogateCache> quality_;
  std::unique_ptr<SurrogateCache> memory_;
  std::unique_ptr<SurrogateCache> failure_;
};

}  // namespace hpo
