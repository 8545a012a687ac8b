#include "common/study/study_status.h"

#include "common/study/status_fields.h"

namespace hpo {

absl::string_view Name(StudyOrder order) { return NameIn(order); }

}  // namespace hpo
