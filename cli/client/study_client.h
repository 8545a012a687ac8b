// The studies of the server, in values. Protobuf types stop here.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/study_exchange.h"
#include "common/study/attributes.h"
#include "common/study/study_status.h"

namespace hpo::cli {

class ServerConnection;

// Thread-safe. Calls have a deadline; a watch has none.
class StudyClient {
 public:
  // `connection` outlives it.
  explicit StudyClient(ServerConnection& connection) : connection_(connection) {}

  absl::StatusOr<StudyStatus> GetStudy(const std::string& name);
  absl::StatusOr<std::vector<StudyStatus>> ListStudies();
  // `yaml` is the file's text, `origin` its name.
  absl::StatusOr<CreateResult> CreateStudy(const std::string& yaml, const std::string& origin,
                                           bool validate_only);
  absl::StatusOr<StudyStatus> UpdateStudy(const std::string& name, const StudyUpdate& update);
  absl::StatusOr<EditResult> EditStudy(const std::string& name, const StudyEdit& edit);
  absl::StatusOr<StudyStatus> OrderStudy(const std::string& name, StudyOrder order,
                                         bool stop_running_trials);
  // Of the study itself where no trial is named. All that is noted then.
  absl::StatusOr<Attributes> ChangeAttributes(const std::string& study,
                                              std::optional<TrialNumber> number,
                                              const AttributeChange& change);

  // Writes the study's archive to `path`, whole or not at all; what was there is replaced.
  //   DataLoss  it arrived damaged
  //   NotFound, PermissionDenied, ResourceExhausted  `path` cannot be written
  absl::StatusOr<ArchiveEnd> ArchiveStudy(const std::string& name, const std::string& path);
  // The study of an archive's text, called `name` where that is not empty.
  absl::StatusOr<StudyStatus> RestoreStudy(const std::string& name, absl::string_view archive);
  // How many trials it had. `archive_sha256`: only where it is as it was archived; empty: anyhow.
  absl::StatusOr<int64_t> DeleteStudy(const std::string& name, const std::string& archive_sha256);

  // Calls `on_event` for the study as it is and then for every change after `after_sequence` (0:
  // all there were), until it returns false (then OK) or the server ends the watch.
  absl::Status Watch(const std::string& study, int64_t after_sequence,
                     const std::function<bool(WatchEvent)>& on_event);

 private:
  ServerConnection& connection_;
};

}  // namespace hpo::cli
