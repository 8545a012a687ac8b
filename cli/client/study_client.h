// The studies of the server, in values. Protobuf types stop here.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/space/search_space.h"
#include "common/study/attributes.h"
#include "common/study/study_status.h"
#include "common/study/trial.h"

namespace hpo::cli {

class ServerConnection;

struct StudyChange {
  std::string name;
  std::optional<int64_t> trials;
  std::optional<int64_t> add_trials;
  std::optional<absl::Duration> wall_clock;
  std::optional<int64_t> failures_in_a_row;
  std::optional<double> failed_share;  // 1: no limit
  std::optional<double> target = {};
  bool remove_target = false;
  bool operator==(const StudyChange&) const = default;
};

// A changed file's text, or ranges.
struct StudyEditing {
  std::string study;
  std::string yaml;
  std::string origin;
  std::map<std::string, Domain> ranges;
  bool validate_only = false;
};

struct StudyEdited {
  StudyStatus study;
  // Of each parameter that has changed.
  std::map<std::string, Domain> before;
  std::map<std::string, Domain> after;
  int64_t num_outside = 0;
  std::vector<TrialNumber> cancelled;
};

// What a watch brings: the study as it was found, or a trial as a change left it.
struct TrialChanged {
  std::string kind;  // "queued", "started", "measured", "oom_met", "replanned",
                     // "preempt_ordered", "stop_ordered", "requeued", "finished"
  Trial trial;
  int64_t sequence = 0;
};
struct NothingNew {
  int64_t sequence = 0;  // of the last change; a watch may go on from here
};
using WatchEvent = std::variant<StudyStatus, TrialChanged, NothingNew>;

// Thread-safe. Calls have a deadline; a watch has none.
class StudyClient {
 public:
  // `connection` outlives it.
  explicit StudyClient(ServerConnection& connection) : connection_(connection) {}

  absl::StatusOr<StudyStatus> GetStudy(const std::string& name);
  absl::StatusOr<std::vector<StudyStatus>> ListStudies();
  // Whether the study is new to the server. `yaml` is the file's text, `origin` its name.
  struct StudyCheck {
    StudyStatus study;
    bool created = false;
  };
  absl::StatusOr<StudyCheck> CreateStudy(const std::string& yaml, const std::string& origin,
                                         bool validate_only);
  absl::StatusOr<StudyStatus> UpdateStudy(const StudyChange& change);
  absl::StatusOr<StudyEdited> EditStudy(const StudyEditing& edit);
  absl::StatusOr<StudyStatus> OrderStudy(const std::string& name, StudyOrder order,
                                         bool stop_running_trials);
  // Of the study itself where no trial is named. All that is noted then.
  absl::StatusOr<Attributes> ChangeAttributes(const std::string& study,
                                              std::optional<TrialNumber> number,
                                              const AttributeChange& change);

  // Writes the study's archive to `path`, whole or not at all; what was there is replaced.
  //   DataLoss  it arrived damaged
  //   NotFound, PermissionDenied, ResourceExhausted  `path` cannot be written
  struct Archived {
    Bytes size;
    std::string sha256;
    int64_t num_trials = 0;
  };
  absl::StatusOr<Archived> ArchiveStudy(const std::string& name, const std::string& path);
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
