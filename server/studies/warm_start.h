// What a new study takes from earlier ones that its file names (StudySpec::warm_start). Pure.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/study/study.h"
#include "sampler/api/sampler.h"
#include "server/storage/records.h"

namespace hpo::server {

// A study that is there already.
struct EarlierStudy {
  StudySpec spec;
  sampler::History history;
};

// Which completed trials of `earlier` a study of `spec` starts from: those with a finite objective
// whose parameters, without the ones that the new space does not have, are a configuration of it.
//   FailedPrecondition  other objectives; no completed trial; or none is such a configuration:
//                       says what was expected of the first, and what it has
//   Cancelled           `cancelled`, which is asked every thousand trials, returned true
absl::StatusOr<StudyPrior> ChoosePrior(
    const StudySpec& spec, const EarlierStudy& earlier,
    absl::FunctionRef<bool()> cancelled = [] { return false; });

// The trials that were chosen, as the sampler takes them. Which were feasible counts where the
// constraints are the same.
//   Cancelled  as above
absl::StatusOr<sampler::PriorStudy> ToPriorStudy(
    const StudySpec& spec, const EarlierStudy& earlier, const StudyPrior& chosen,
    absl::FunctionRef<bool()> cancelled = [] { return false; });

}  // namespace hpo::server
