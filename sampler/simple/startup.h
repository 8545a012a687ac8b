// The trials before a sampler has a model.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "common/study/study.h"
#include "sampler/api/history.h"
#include "sampler/api/sampler.h"

namespace hpo::sampler {

// How many they are: spec.startup_trials, but of a small budget no more than a third (at least 3),
// so that most of it is searched by a model (docs/adr/024-few-trials-of-a-small-budget.md).
int64_t StartupTrials(const SamplerSpec& spec, const AskContext& context);

// What is proposed then: what priors say where it is their turn (SuggestFromPriors), else as
// spec.startup says.
//   FailedPrecondition  as Sampler::Suggest
absl::StatusOr<Suggestion> SuggestAtStartup(const AskContext& context, const History& history,
                                            const SamplerSpec& spec,
                                            std::span<const PriorStudy> priors);

}  // namespace hpo::sampler
