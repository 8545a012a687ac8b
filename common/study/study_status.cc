#include "common/study/study_status.h"

namespace hpo {

absl::string_view Name(StudyOrder order) {
  switch (order) {
    case StudyOrder::kRun:
      return "RUN";
    case StudyOrder::kPause:
      return "PAUSE";
    case StudyOrder::kStop:
      return "STOP";
  }
  return "";
}

std::optional<StudyOrder> ParseStudyOrder(absl::string_view name) {
  for (const StudyOrder order : {StudyOrder::kRun, StudyOrder::kPause, StudyOrder::kStop}) {
    if (name == Name(order)) return order;
  }
  return std::nullopt;
}

}  // namespace hpo
