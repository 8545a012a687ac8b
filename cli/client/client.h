// The server as the CLI sees it, in values. Protobuf types stop here.
//
// Codes of every call, apart from the server's own:
//   Unavailable  "cannot reach hpo-server at ADDRESS: is it running? start it with: ..."
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/server_status.h"
#include "common/study/imported_trial.h"
#include "common/study/study_status.h"
#include "common/study/trial_view.h"
#include "memory/need/memory_estimate.h"

namespace hpo {

namespace v1 {
class Study;
}

struct TrialQuery {
  std::string study;
  std::vector<TrialState> states;  // empty: all
  int page_size = 0;               // 0: the server's default
  std::string page_token;
  bool newest_first = false;
};

struct TrialListing {
  std::vector<Trial> trials;  // without attempts
  std::string next_token;     // empty on the last page
  int64_t total = 0;
};

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

struct RetriedTrials {
  std::vector<Trial> trials;                                 // that wait now
  std::vector<std::pair<TrialNumber, std::string>> skipped;  // and why
};

struct EnqueuedTrial {
  std::string study;
  ParamMap params;
  bool demonstration = false;
  bool skip_admission = false;
  int64_t forced_micro_batch = 0;
};

struct MemoryQuery {
  std::string study;
  ParamMap params;
  std::string worker;  // empty: the one with the largest capacity
  Bytes limit;         // 0: the worker's capacity
};

struct MemoryVerdict {
  MemoryEstimate estimate;
  MemoryPlan plan;
  bool fits = false;
  Bytes usable;
  std::string explanation;
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
class Client {
 public:
  // What the server is. Commands that it advises are given its address (cli/client/advice.h).
  //   kServer    one that stays
  //   kOwn       one that ends with this command, so that advice for later is left out, and advice
  //              to start a worker
  //   kSnapshot  as kOwn; it serves what a database file holds, so that what it says of workers and
  //              of waiting is no fact, and is left out, too
  enum class Source { kServer, kOwn, kSnapshot };

  // `address` as gRPC takes it: "127.0.0.1:50051", "unix:/path". Connects with the first call.
  explicit Client(const std::string& address, absl::Duration deadline = absl::Seconds(30),
                  Source source = Source::kServer);
  ~Client();

  const std::string& address() const { return address_; }

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
  absl::StatusOr<StudyEdited> EditStudy(const StudyEditing& edit);
  absl::StatusOr<Trial> EnqueueTrial(const EnqueuedTrial& trial);
  // Of the study itself where no trial is named. All that is noted then.
  absl::StatusOr<Attributes> ChangeAttributes(const std::string& study,
                                              std::optional<TrialNumber> number,
                                              const AttributeChange& change);
  // `numbers` empty: every trial that failed.
  absl::StatusOr<RetriedTrials> RetryTrials(const std::string& study,
                                            const std::vector<TrialNumber>& numbers);
  // In one transaction, however many; its deadline is 10 minutes.
  absl::StatusOr<ImportResult> ImportTrials(const TrialImport& import);
  absl::StatusOr<Trial> PreemptTrial(const std::string& study, TrialNumber number);
  absl::StatusOr<Trial> StopTrial(const std::string& study, TrialNumber number);
  absl::StatusOr<Trial> CancelTrial(const std::string& study, TrialNumber number);
  absl::StatusOr<StudyStatus> OrderStudy(const std::string& name, StudyOrder order,
                                         bool stop_running_trials);
  absl::StatusOr<TrialListing> ListTrials(const TrialQuery& query);
  absl::StatusOr<TrialView> GetTrial(const std::string& study, TrialNumber number);
  // `count` 0: the best one; of several objectives the whole Pareto front.
  absl::StatusOr<std::vector<Trial>> BestTrials(const std::string& study, int count);
  absl::StatusOr<MemoryVerdict> EstimateMemory(const MemoryQuery& query);

  // Calls `on_event` for the study as it is and then for every change after `after_sequence` (0:
  // all there were), until it returns false (then OK) or the server ends the watch.
  absl::Status Watch(const std::string& study, int64_t after_sequence,
                     const std::function<bool(WatchEvent)>& on_event);

  // A server of an earlier version, which does not tell, is one without trouble.
  absl::StatusOr<ServerStatus> GetServer();
  // Writes a copy of the server's database to `path`, whole or not at all; what was there is
  // replaced. Its size.
  //   DataLoss  it arrived damaged
  //   NotFound, PermissionDenied, ResourceExhausted  `path` cannot be written
  absl::StatusOr<Bytes> BackUp(const std::string& path);

  // Waits for the server to be there (again). False: `limit` is over.
  bool WaitUntilReachable(absl::Duration limit);

 private:
  class Connection;  // what is gRPC's

  absl::StatusOr<StudyStatus> ReadStudy(const v1::Study& study) const;

  const std::string address_;
  const Source source_;
  const std::unique_ptr<Connection> connection_;
};

// Whether a call has failed because no server answers.
bool IsUnreachable(const absl::Status& status);

// Fills `study.front` where the study has several objectives.
absl::Status AddFront(Client& client, StudyStatus& study);

// Every trial that the query asks for, read in the largest pages, in order, until `take` fails.
absl::Status ForEachTrial(Client& client, TrialQuery query,
                          absl::FunctionRef<absl::Status(Trial& trial)> take);

}  // namespace hpo
