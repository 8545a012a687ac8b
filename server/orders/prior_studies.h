// The earlier studies that a study starts from (StudySpec::warm_start).
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/study/study.h"
#include "sampler/api/sampler.h"
#include "server/storage/records.h"
#include "server/studies/study_registry.h"

namespace hpo::server {

// What a study of `spec` takes from those that it names.
//   NotFound            no such study; lists those there are
//   FailedPrecondition, Cancelled  ChoosePrior
absl::StatusOr<std::vector<StudyPrior>> ChoosePriors(const StudyRegistry& studies,
                                                     const StudySpec& spec,
                                                     absl::FunctionRef<bool()> cancelled);

// The trials that were chosen.
//   NotFound   one of the studies is gone
//   Cancelled  ToPriorStudy
absl::StatusOr<std::vector<sampler::PriorStudy>> CollectPriors(
    const StudyRegistry& studies, const StudySpec& spec, const std::vector<StudyPrior>& chosen,
    absl::FunctionRef<bool()> cancelled = [] { return false; });

}  // namespace hpo::server
