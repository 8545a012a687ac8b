// How much of a study's search space fits which GPU by what its trials used: for programs whose
// steps nobody can replay. As SurveySpace (memory/plan/space_survey.h), by learned_need.h and
// dry_run_need.h. Pure; microseconds for each configuration and GPU.
#pragma once

#include "absl/status/statusor.h"
#include "common/study/study.h"
#include "memory/plan/fit_decision.h"
#include "memory/plan/space_survey.h"

namespace hpo::memory {

// `decider` decides for `study`. Nothing splits a batch of such a program, so that the counts for
// the policy "plan" are those for "strict"; all is of one model without a name.
//   InvalidArgument     no GPU
//   FailedPrecondition  constraints leave nothing of the space; nothing is known of the memory of
//                       any of its configurations
absl::StatusOr<SpaceSurvey> SurveyLearned(const StudySpec& study, const FitDecider& decider,
                                          const SurveyOptions& options);

}  // namespace hpo::memory
