// The trials of a study on the server, and their memory, in values. Protobuf types stop here.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/study/imported_trial.h"
#include "common/study/study_status.h"
#include "common/study/trial_view.h"
#include "memory/need/memory_estimate.h"

namespace hpo::cli {

class ServerConnection;

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
  memory::MemoryEstimate estimate;
  MemoryPlan plan;
  bool fits = false;
  Bytes usable;
  std::string explanation;
};

// Thread-safe. Calls have a deadline.
class TrialClient {
 public:
  // `connection` outlives it.
  explicit TrialClient(ServerConnection& connection) : connection_(connection) {}

  absl::StatusOr<TrialListing> ListTrials(const TrialQuery& query);
  absl::StatusOr<TrialView> GetTrial(const std::string& study, TrialNumber number);
  // `count` 0: the best one; of several objectives the whole Pareto front.
  absl::StatusOr<std::vector<Trial>> BestTrials(const std::string& study, int count);
  absl::StatusOr<Trial> EnqueueTrial(const EnqueuedTrial& trial);
  // `numbers` empty: every trial that failed.
  absl::StatusOr<RetriedTrials> RetryTrials(const std::string& study,
                                            const std::vector<TrialNumber>& numbers);
  // In one transaction, however many; its deadline is 10 minutes.
  absl::StatusOr<ImportResult> ImportTrials(const TrialImport& import);
  absl::StatusOr<Trial> PreemptTrial(const std::string& study, TrialNumber number);
  absl::StatusOr<Trial> StopTrial(const std::string& study, TrialNumber number);
  absl::StatusOr<Trial> CancelTrial(const std::string& study, TrialNumber number);
  absl::StatusOr<MemoryVerdict> EstimateMemory(const MemoryQuery& query);

 private:
  ServerConnection& connection_;
};

// Fills `study.front` where the study has several objectives.
absl::Status AddFront(TrialClient& trials, StudyStatus& study);

// Every trial that the query asks for, read in the largest pages, in order, until `take` fails.
absl::Status ForEachTrial(TrialClient& trials, TrialQuery query,
                          absl::FunctionRef<absl::Status(Trial& trial)> take);

}  // namespace hpo::cli
