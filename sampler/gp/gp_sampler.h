// Bayesian optimisation by a Gaussian process: Matern 5/2 with a length scale per axis over mixed
// and conditional inputs, expected improvement in logarithms, and memory as a constraint of its
// own. Best where trials are few and the objective is smooth.
//
// Trials of even number are looked for everywhere, by a process over all trials; those of odd
// number in a box around the best, by a process over what lies near it (trust_region.h). The first
// finds the basin, the second its floor; what is right for one, above all how losses are scaled and
// how long the lengths are, is wrong for the other.
//
// Quality: completed trials, their losses scaled by loss_scale.h; trials under way as fantasies.
// Memory, known: only configurations that fit are walked through. Memory, learned, and
// failures: a process each over labels is a barrier around what is likely to be lost. Constraints:
// a process each over how far trials are beyond the limit is one too; what is to be improved on is
// the best feasible trial. As long as none is, their violation is what is minimized. What a trial
// has had already is not proposed again.
// Kernel parameters are fitted, everywhere, to the first n trials by number, n being the last of a
// series of fixed counts (FitPoint), in the box to all that it is over; from the prior's centre: a
// function of the history alone. Fits and factors are kept between calls where the trials that they
// are of have not changed.
// A prior study's posterior mean, weighted by what it is worth here, is taken off the losses first
// and added to what is expected (prior_trend.h), as long as that makes the study's own losses more
// probable than a process alone does.
// The parts: training_data.h, loss_scale.h, trust_region.h, input_space.h, hyperparameters.h,
// posterior.h, acquisition.h, acquisition_search.h. One objective (ValidateStudy).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sampler/api/sampler.h"
#include "sampler/gp/prior_posteriors.h"
#include "sampler/gp/surrogate/training_data.h"

namespace hpo::sampler {

struct Trend;

// Threads: as Sampler.
class GpSampler final : public Sampler {
 public:
  // The study's memory policy says what a trial's memory use means for smaller cards
  // (MemoryViolation).
  explicit GpSampler(const StudySpec& study, std::vector<PriorStudy> priors = {});
  ~GpSampler() override;

  void Observe(const HistoryEvent& event) override { history_.Apply(event); }
  absl::StatusOr<Suggestion> Suggest(const AskContext& context) const override;

  const History& history() const { return history_; }

 private:
  struct QualityCaches;
  struct Barriers;

  std::string DescribeProposer(const std::optional<Trend>& trend) const;
  Barriers FindBarriers(const InputSpace& inputs, const TrainingData& data) const;

  SamplerSpec spec_;
  MemoryPolicy policy_;
  std::string metric_;
  PriorPosteriors priors_;
  History history_;
  std::unique_ptr<QualityCaches> everywhere_;
  std::unique_ptr<QualityCaches> in_box_;
  std::unique_ptr<SurrogateCache> memory_;
  std::unique_ptr<SurrogateCache> failure_;
  std::vector<std::pair<MetricConstraint, std::unique_ptr<SurrogateCache>>> constraints_;
};

}  // namespace hpo::sampler
