// Studies are archived, restored and deleted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/storage/sqlite/database.h"
#include "server/storage/study_archive.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"

namespace hpo::server {

// Thread-safe. Codes: StudyApi.
class StudyArchiver {
 public:
  // `state` outlives it.
  explicit StudyArchiver(SchedulerState& state) : state_(state) {}

  // Passes the study's archive on line by line (study_archive.h); how many trials it holds.
  absl::StatusOr<int64_t> ArchiveStudy(const std::string& name, const ArchiveSink& take) const;
  // The restored study's name. `admit`: StudyApi.
  absl::StatusOr<std::string> RestoreStudy(
      const std::string& name, const std::string& archive,
      const std::function<absl::Status(const StudySpec&)>& admit);
  // How many trials it had.
  absl::StatusOr<int64_t> DeleteStudy(const std::string& name, const std::string& archive_sha256);

 private:
  absl::Status CheckMayGo(Database& database, const StudyRuntime& study,
                          const std::string& archive_sha256) const;

  SchedulerState& state_;
};

}  // namespace hpo::server
