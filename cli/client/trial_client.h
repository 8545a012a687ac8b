// The trials of a study on the server, and their memory, in values. Protobuf types stop here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/protocol/study_exchange.h"
#include "common/study/imported_trial.h"
#include "common/study/study_status.h"
#include "common/study/trial_view.h"
#include "memory/need/memory_estimate.h"

namespace hpo::cli {

class ServerConnection;

// Thread-safe. Calls have a deadline.
class TrialClient {
 public:
  // `connection` outlives it.
  explicit TrialClient(ServerConnection& connection) : connection_(connection) {}

  absl::StatusOr<TrialPage> ListTrials(const std::string& study, const TrialQuery& query);
  // The numbers of all trials that the conditions of `query` hold for, in its order.
  absl::StatusOr<std::vector<int64_t>> FindTrials(const std::string& study, TableQuery query);
  absl::StatusOr<TrialView> GetTrial(const std::string& study, TrialNumber number);
  // `count` 0: the best one; of several objectives the whole Pareto front.
  absl::StatusOr<std::vector<Trial>> BestTrials(const std::string& study, int count);
  absl::StatusOr<Trial> EnqueueTrial(const std::string& study, const EnqueueRequest& enqueue);
  absl::StatusOr<RetryResult> RetryTrials(const std::string& study, const RetryRequest& retry);
  // In one transaction, however many; its deadline is 10 minutes.
  absl::StatusOr<ImportResult> ImportTrials(const TrialImport& import);
  absl::StatusOr<Trial> PreemptTrial(const std::string& study, TrialNumber number);
  absl::StatusOr<Trial> StopTrial(const std::string& study, TrialNumber number);
  absl::StatusOr<Trial> CancelTrial(const std::string& study, TrialNumber number);
  absl::StatusOr<memory::MemoryAnswer> EstimateMemory(const std::string& study,
                                                      const MemoryQuery& query);

 private:
  ServerConnection& connection_;
};

// Fills `study.front` where the study has several objectives.
absl::Status AddFront(TrialClient& trials, StudyStatus& study);

// Every trial that the query asks for, read in the largest pages, in order, until `take` fails.
absl::Status ForEachTrial(TrialClient& trials, const std::string& study, TrialQuery query,
                          absl::FunctionRef<absl::Status(Trial& trial)> take);

}  // namespace hpo::cli
