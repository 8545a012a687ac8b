#include "common/study/study_status.h"

#include "common/study/status_fields.h"

namespace hpo {

absl::string_view Name(StudyOrder order) { return NameIn(order); }

std::optional<StudyOrder> ParseStudyOrder(absl::string_view name) {
  return ValueNamed<StudyOrder>(name);
}

}  // namespace hpo
