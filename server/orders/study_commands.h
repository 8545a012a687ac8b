// Studies are created, and their budgets and choices changed.
#pragma once

#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/protocol/study_exchange.h"
#include "common/study/study.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"

namespace hpo::server {

// Thread-safe. Codes: StudyApi.
class StudyCommands {
 public:
  // `state` outlives it.
  explicit StudyCommands(SchedulerState& state) : state_(state) {}

  // Whether the study was created; false: it was there.
  absl::StatusOr<bool> CreateStudy(
      const StudySpec& spec, bool validate_only, const std::string& request_id,
      absl::FunctionRef<bool()> cancelled = [] { return false; });
  absl::Status UpdateStudy(const std::string& name, const StudyUpdate& update,
                           const std::string& request_id);

 private:
  absl::StatusOr<bool> CreateOrMerge(const StudySpec& spec, const std::string& request_id,
                                     const std::string& body, absl::FunctionRef<bool()> cancelled);
  // What a study becomes by its file; the file's budget and choices count where the file changed.
  absl::StatusOr<StudySpec> MergeStated(const StudyRuntime& known, const StudySpec& spec) const;

  SchedulerState& state_;
};

}  // namespace hpo::server
