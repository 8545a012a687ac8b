#include "memory/frontier/learned_survey.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "memory/frontier/frontier_space.h"
#include "memory/plan/space_cut.h"

namespace hpo::memory {
namespace {

// Of one parameter.
constexpr size_t kMostValues = 1000;

void TakeNeed(Bytes needed, ModelSurvey& model) {
  if (needed == Bytes{}) return;
  const bool is_first = model.largest_literal == Bytes{};
  model.smallest_literal = is_first ? needed : std::min(model.smallest_literal, needed);
  model.smallest_plan = model.smallest_literal;
  model.largest_literal = std::max(model.largest_literal, needed);
}

// Of one GPU. `is_known` becomes true for configurations of which something is known there.
void Survey(const FrontierSpace& space, const FitDecider& decider, Bytes capacity,
            std::vector<bool>& is_known, SpaceSurvey& survey) {
  PolicyCount count;
  FitTallies tallies;
  ModelSurvey& model = survey.models.front();
  for (size_t i = 0; i < space.configurations.size(); ++i) {
    const ParamMap& params = space.configurations[i];
    const std::optional<LearnedFit> learned = decider.Learned(params, capacity);
    if (!learned.has_value() || !learned->IsKnown()) {
      ++count.unknown;
      continue;
    }
    is_known[i] = true;
    ++(learned->fits ? count.fits : count.does_not_fit);
    tallies.Count(params, learned->fits);
    TakeNeed(learned->needed, model);
  }
  count.cut = tallies.BestCut();
  model.strict_fits.push_back(count.fits);
  model.plan_fits.push_back(count.fits);
  survey.cards.push_back({.capacity = capacity,
                          .usable = UsableBytes(capacity, decider.device(), decider.memory()),
                          .strict = count,
                          .plan = count});
}

}  // namespace

absl::StatusOr<SpaceSurvey> SurveyLearned(const StudySpec& study, const FitDecider& decider,
                                          const SurveyOptions& options) {
  if (options.cards.empty()) {
    return absl::InvalidArgumentError("capacities: expected at least one GPU's memory, got none");
  }
  HPO_ASSIGN_OR_RETURN(
      const FrontierSpace space,
      FrontierSpaceOf(study.space,
                      {.relevant = UsualRelevant(study.space),
                       .most_values = kMostValues,
                       .most_configurations = static_cast<size_t>(options.most_configurations),
                       .seed = options.seed}));
  SpaceSurvey survey;
  survey.configurations = std::ssize(space.configurations);
  survey.sampled = space.is_sampled || space.is_thinned;
  for (const FrontierAxis& axis : space.axes) survey.parameters.push_back(axis.name);
  survey.models = {{.name = "", .configurations = survey.configurations}};
  std::vector<bool> is_known(space.configurations.size());
  for (const Bytes capacity : options.cards) Survey(space, decider, capacity, is_known, survey);
  survey.unknown = std::count(is_known.begin(), is_known.end(), false);
  if (survey.unknown < survey.configurations) return survey;
  return absl::FailedPreconditionError(
      absl::StrCat("study ", study.name,
                   ": nothing is known of the memory of its configurations: "
                   "expected models that the memory model knows, dry runs, or ",
                   LearnedNeed::kFewestUses, " trials that have reported what they used"));
}

}  // namespace hpo::memory
