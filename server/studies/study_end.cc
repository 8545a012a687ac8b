#include "server/studies/study_end.h"

#include "absl/strings/str_cat.h"

namespace hpo {

std::string WhyHeld(const StudyRuntime& study) {
  const std::string resume = absl::StrCat("; to go on: hpo study resume ", study.name());
  if (const auto failure = study.failure()) return absl::StrCat(failure->why, resume);
  if (study.order() == StudyOrder::kStop) return absl::StrCat("stopped", resume);
  if (study.order() == StudyOrder::kPause) return absl::StrCat("paused", resume);
  return "";
}

FinishedStudy EndOf(const StudyRuntime& study) {
  FinishedStudy end{
      .study = study.name(), .why = WhyHeld(study), .failed = study.failure().has_value()};
  if (end.why.empty()) end.why = study.termination();
  if (end.why.empty()) end.why = "its budget is used up";
  return end;
}

}  // namespace hpo
