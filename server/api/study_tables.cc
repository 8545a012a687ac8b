// Tested by tests/server/api/study_api_test.cc.
#include "server/api/study_tables.h"

#include <set>

#include "common/base/status.h"
#include "server/scheduler/trial_scheduler.h"

namespace hpo::server {

std::shared_ptr<TrialTable> StudyTables::TableOf(const StudyRuntime& study) const {
  std::set<StudyRuntime::Identity> there;
  for (const std::string& name : scheduler_.state().studies.Names()) {
    const absl::StatusOr<StudyRuntime*> one = scheduler_.state().studies.Find(name);
    if (one.ok()) there.insert((*one)->identity());
  }
  tables_.Keep([&there](const auto& identity) { return there.contains(identity); });
  return tables_.Of(study.identity());
}

absl::Status StudyTables::Use(const std::string& study, const TableUse& use) const {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const runtime, scheduler_.state().studies.Find(study));
  return TableOf(*runtime)->Use(*scheduler_.state().store, *runtime,
                                [&](const TrialColumns& columns, int64_t sequence) {
                                  return use(*runtime, columns, sequence);
                                });
}

void StudyTables::ReadAll(const std::function<bool()>& cancelled) const {
  for (const std::string& name : scheduler_.state().studies.Names()) {
    if (cancelled()) return;
    // Whoever asks for a study that cannot be read is told so then.
    Use(name, [](const auto&, const auto&, int64_t) { return absl::OkStatus(); }).IgnoreError();
  }
}

}  // namespace hpo::server
