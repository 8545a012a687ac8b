#include "server/studies/study_end.h"

#include "absl/strings/str_cat.h"

namespace hpo::server {

std::string WhyHeld(const std::string& study, const StudyStanding& standing) {
  const std::string resume = absl::StrCat("; to go on: hpo study resume ", study);
  if (standing.failure) return absl::StrCat(standing.failure->why, resume);
  if (standing.order == StudyOrder::kStop) return absl::StrCat("stopped", resume);
  if (standing.order == StudyOrder::kPause) return absl::StrCat("paused", resume);
  return "";
}

std::string WhyEnding(const StudyStanding& standing) {
  if (standing.finished || standing.hands_out) return "";
  return absl::StrCat("ends when the trials that run have ended: ",
                      standing.target_reached.empty() ? "the study's wall clock is used up"
                                                      : standing.target_reached);
}

FinishedStudy EndOf(const StudyRuntime& study) {
  const StudyStanding standing = study.standing();
  FinishedStudy end{.study = study.name(),
                    .why = WhyHeld(study.name(), standing),
                    .failed = standing.failure.has_value()};
  if (end.why.empty()) end.why = standing.termination;
  if (end.why.empty()) end.why = "its budget is used up";
  return end;
}

}  // namespace hpo::server
