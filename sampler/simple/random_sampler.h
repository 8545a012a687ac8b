// Random search among the configurations that fit. Also what other samplers start with.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "sampler/api/sampler.h"

namespace hpo::sampler {

// What the next trial is to take: while fewer than `startup_trials` (at least one) have finished
// and no trial of `history` has had the default of every parameter with a default that it holds,
// the defaults; else nothing.
ParamMap DueDefaults(const SearchSpace& space, const History& history, const SamplerSpec& spec);

// A random suggestion for `context`: the defaults that are due, where allowed and feasible, and the
// rest drawn. Where no draw fits, a trial that ran with one parameter drawn again, or none.
// `why` is the reason of an independent draw.
//   FailedPrecondition  as Sampler::Suggest
absl::StatusOr<Suggestion> SuggestAtRandom(const AskContext& context, const History& history,
                                           const SamplerSpec& spec, absl::string_view why);

// The reason of a model that has no candidate.
inline constexpr char kNoCandidate[] = "an independent draw, as the model found nothing that fits";

// Threads: as Sampler.
class RandomSampler final : public Sampler {
 public:
  explicit RandomSampler(const SamplerSpec& spec) : spec_(spec) {}

  void Observe(const HistoryEvent& event) override { history_.Apply(event); }
  absl::StatusOr<Suggestion> Suggest(const AskContext& context) const override {
    return SuggestAtRandom(context, history_, spec_, "an independent draw");
  }

 private:
  SamplerSpec spec_;
  History history_;
};

}  // namespace hpo::sampler
