#include "server/orders/prior_studies.h"

#include <string>
#include <utility>

#include "common/base/status.h"
#include "server/studies/warm_start.h"

namespace hpo::server {

absl::StatusOr<std::vector<StudyPrior>> ChoosePriors(const StudyRegistry& studies,
                                                     const StudySpec& spec,
                                                     absl::FunctionRef<bool()> cancelled) {
  std::vector<StudyPrior> chosen;
  for (const std::string& name : spec.warm_start) {
    const absl::StatusOr<StudyRuntime*> found = studies.Find(name);
    if (!found.ok()) return Annotate(found.status(), "warm_start");
    HPO_ASSIGN_OR_RETURN(StudyPrior prior,
                         ChoosePrior(spec, {(*found)->spec(), (*found)->history()}, cancelled));
    chosen.push_back(std::move(prior));
  }
  return chosen;
}

absl::StatusOr<std::vector<sampler::PriorStudy>> CollectPriors(
    const StudyRegistry& studies, const StudySpec& spec, const std::vector<StudyPrior>& chosen,
    absl::FunctionRef<bool()> cancelled) {
  std::vector<sampler::PriorStudy> priors;
  for (const StudyPrior& prior : chosen) {
    HPO_ASSIGN_OR_RETURN(const StudyRuntime* const earlier, studies.Find(prior.study));
    HPO_ASSIGN_OR_RETURN(
        priors.emplace_back(),
        ToPriorStudy(spec, {earlier->spec(), earlier->history()}, prior, cancelled));
  }
  return priors;
}

}  // namespace hpo::server
