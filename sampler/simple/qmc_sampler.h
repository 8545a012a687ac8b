// Scrambled Sobol points over the whole space: even where random search clumps.
//
// A dimension belongs to each modelled parameter by its place in the space, whether its conditions
// hold or not, and is the part of its allowed domain that it takes (ConfigurationAt). Parameters
// that are not modelled, and those beyond kSobolDimensions, are drawn at random.
// Trial n takes point n. Where that does not fit the asking worker, or a trial has had it, it takes
// point n of the same sequence rescrambled, until one helps: what trials take instead is as even
// as what they would have had.
#pragma once

#include <span>

#include "sampler/api/sampler.h"

namespace hpo::sampler {

// The suggestion for `context`, defaults that are due first (DueDefaults). Random search takes over
// where none of 457 points fits; where all that fit were had, the first is proposed again.
//   FailedPrecondition  as Sampler::Suggest
absl::StatusOr<Suggestion> SuggestQuasiRandom(const AskContext& context, const History& history,
                                              const SamplerSpec& spec);

// Threads: as Sampler.
class QmcSampler final : public Sampler {
 public:
  explicit QmcSampler(const SamplerSpec& spec) : spec_(spec) {}

  void Observe(const HistoryEvent& event) override { history_.Apply(event); }
  absl::StatusOr<Suggestion> Suggest(const AskContext& context) const override {
    return SuggestQuasiRandom(context, history_, spec_);
  }

 private:
  SamplerSpec spec_;
  History history_;
};

}  // namespace hpo::sampler
