// Spaces whose configurations can be counted: no configuration is proposed twice while there are
// others, and a space that is used up is known to be. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "common/space/search_space.h"
#include "sampler/api/history.h"
#include "sampler/api/sampler.h"

namespace hpo::sampler {

// Whether trials have used up every configuration of `space`: one of them runs, waits, has
// completed or was stopped by a pruner, or two have ended in another way (an error, a lack of
// memory). False where values cannot be counted, and where a parameter that is not modelled (a
// seed) makes repetitions worth while. O(trials) once there are as many as a cheap bound of the
// configurations from below.
bool SpaceIsUsedUp(const History& history, const SearchSpace& space);

// Whether a configuration of `space` may well be drawn twice: no parameter that is always there is
// continuous.
bool CanRepeat(const SearchSpace& space);

// Another sampler's proposals, but no configuration twice while there are others.
// Threads: as Sampler.
class WithoutRepetition final : public Sampler {
 public:
  // seed: the study's.
  WithoutRepetition(std::unique_ptr<Sampler> proposer, uint64_t seed)
      : proposer_(std::move(proposer)), seed_(seed) {}

  void Observe(const HistoryEvent& event) override;

  // What the other sampler proposes where no trial has had its modelled part; else one at random
  // that no trial has had and that fits the asking worker, or else that is not used up
  // (SpaceIsUsedUp). A repetition stays where context.repetition allows it; where all that fits has
  // been tried and a parameter is not modelled; and where a space of more than 4,096 configurations
  // was drawn from in vain. O(trials).
  //   OutOfRange  every configuration of context.space that fits the asking worker is used up, and
  //               context.repetition is kNever
  //   as the other sampler
  absl::StatusOr<Suggestion> Suggest(const AskContext& context) const override;

 private:
  std::unique_ptr<Sampler> proposer_;
  uint64_t seed_;
  History history_;  // of parameters and states alone
};

}  // namespace hpo::sampler
