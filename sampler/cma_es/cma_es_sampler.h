// CMA-ES (evolution_strategy.h) over the numbers of a space. Best where trials are many, the
// objective is continuous and parameters depend on each other.
//
// Made for spaces of numbers without conditions (ValidateStudy); any other parameter would be drawn
// at random. A parameter is an axis, its position on its scale (numeric_scale.h). What a value on a
// grid stands for inside its cell is drawn for each trial, so that the distribution never
// becomes narrower than a cell. The first trials are as startup says; the distribution begins where
// the best of them lie, and every finished or failed trial after them is told to it by number,
// whoever proposed it: completed ones by their loss; pruned ones are worse than those, by their
// last value; then those that violate a constraint, by how far; failed ones, those that the asking
// worker could not run and losses that are not finite are worst. One objective (ValidateStudy).
#pragma once

#include <cstdint>
#include <memory>

#include "sampler/api/sampler.h"

namespace hpo::sampler {

class EvolutionCache;

// Threads: as Sampler.
class CmaEsSampler final : public Sampler {
 public:
  CmaEsSampler(const SamplerSpec& spec, MemoryPolicy policy);
  ~CmaEsSampler() override;

  void Observe(const HistoryEvent& event) override { history_.Apply(event); }
  // The distribution begins from the first trials (StartupTrials).
  absl::StatusOr<Suggestion> Suggest(const AskContext& context) const override;
  // The same from so many finished trials, at least 1.
  absl::StatusOr<Suggestion> SuggestAfter(int64_t startup_trials, const AskContext& context) const;

 private:
  SamplerSpec spec_;
  MemoryPolicy policy_;
  History history_;
  std::unique_ptr<EvolutionCache> cache_;
};

}  // namespace hpo::sampler
