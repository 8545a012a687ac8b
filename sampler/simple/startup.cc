#include "sampler/simple/startup.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sampler/priors/prior_study.h"
#include "sampler/simple/qmc_sampler.h"
#include "sampler/simple/random_sampler.h"

namespace hpo::sampler {
namespace {

constexpr int64_t kShareOfBudget = 3;  // one in so many
constexpr int64_t kFewest = 3;

}  // namespace

int64_t StartupTrials(const SamplerSpec& spec, const AskContext& context) {
  if (!context.budget_trials.has_value()) return spec.startup_trials;
  return std::min(spec.startup_trials, std::max(kFewest, *context.budget_trials / kShareOfBudget));
}

absl::StatusOr<Suggestion> SuggestAtStartup(const AskContext& context, const History& history,
                                            const SamplerSpec& spec,
                                            std::span<const PriorStudy> priors) {
  if (auto suggestion = SuggestFromPriors(context, history, priors); suggestion.has_value()) {
    return *std::move(suggestion);
  }
  absl::StatusOr<Suggestion> first = spec.startup == "sobol"
                                         ? SuggestQuasiRandom(context, history, spec)
                                         : SuggestAtRandom(context, history, spec, "");
  if (first.ok()) {
    first->reason = absl::StrCat("one of the first ", StartupTrials(spec, context),
                                 " trials, from which a model is made");
  }
  return first;
}

}  // namespace hpo::sampler
