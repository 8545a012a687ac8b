// The commands on studies, `hpo status` and `hpo watch`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/client/session.h"

namespace hpo::cli {

absl::Status ShowStatus(Session& session);

// The study when the watch ended.
absl::StatusOr<StudyStatus> WatchStudy(Session& session, bool until_finished);

// `tags`: only studies that have all of them.
absl::Status ListStudies(Session& session, const std::vector<std::string>& tags);

absl::Status ShowStudy(Session& session);

// At least one of the change's fields is set.
absl::Status ExtendStudy(Session& session, const StudyUpdate& update);

// Pauses or stops the study, or has it go on. `stop_running_trials`: only with kStop.
absl::Status OrderStudy(Session& session, StudyOrder order, bool stop_running_trials);

struct StudyFileOptions {
  std::string path;  // or a preset's name
  std::string name;  // over the file's; empty: that one
};

// Checks the file here, and where a server is there also against the study of that name.
absl::Status ValidateStudyFile(Session& session, const StudyFileOptions& file);

// Sends the file's text to the server.
absl::Status CreateStudy(Session& session, const StudyFileOptions& file);

}  // namespace hpo::cli
