// Every configuration of the space once, in a fixed order (grid_walk.h); parameters that are not
// modelled are drawn at random for each. ValidateStudy has seen that values can be counted.
//
// The next one is the first that no trial in any state has had and that fits the asking worker:
// what does not fit is left for a larger one, and the suggestion says how many were. Where the
// first 4,096 that are left do not fit, one is drawn at random instead, so that a small card does
// not wait for ever. Defaults are no concern of a grid. O(configurations before the next one) an
// ask.
#pragma once

#include "sampler/api/sampler.h"

namespace hpo::sampler {

// Whether trials have had every configuration of the grid of `space`, and there is one.
bool GridIsUsedUp(const History& history, const SearchSpace& space);

// Threads: as Sampler.
class GridSampler final : public Sampler {
 public:
  explicit GridSampler(const SamplerSpec& spec) : spec_(spec) {}

  void Observe(const HistoryEvent& event) override { history_.Apply(event); }

  //   OutOfRange, FailedPrecondition  as Sampler::Suggest
  absl::StatusOr<Suggestion> Suggest(const AskContext& context) const override;

 private:
  SamplerSpec spec_;
  History history_;
};

}  // namespace hpo::sampler
