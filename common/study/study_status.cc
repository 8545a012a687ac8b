#include "common/study/study_status.h"

#include "common/base/fields/names.h"

namespace hpo {

template <>
struct NamesOf<StudyOrder> {
  static constexpr const char* kNames[] = {"RUN", "PAUSE", "STOP"};
};

absl::string_view Name(StudyOrder order) { return NameIn(order); }

std::optional<StudyOrder> ParseStudyOrder(absl::string_view name) {
  return ValueNamed<StudyOrder>(name);
}

}  // namespace hpo
