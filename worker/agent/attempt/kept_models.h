// Trained models on this worker's disk. Of each study the best few are kept, so that a hundred
// trials do not fill the disk; the study's best trials are then among the workers' best. Only files
// below the runs folder are ever removed. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/study/study.h"
#include "common/study/trial.h"
#include "worker/agent/attempt/attempt_runner.h"

namespace hpo::agent {

// By what the models of a study are ranked.
struct ModelRank {
  Objective objective;
  std::vector<MetricConstraint> constraints;
};

class KeptModels {
 public:
  // `num_kept`: models of each study, at least 1; nullopt: remove nothing.
  KeptModels(std::string runs_folder, std::optional<int64_t> num_kept)
      : runs_folder_(std::move(runs_folder)), num_kept_(num_kept) {}

  // An attempt of `study` that wrote to `attempt_folder` has ended, and the server knows. A
  // completed one takes its place among the best so far, those that violate the constraints least
  // first, then by the objective's metric, and what is then one too many is removed (the newer one
  // of equals; none where the objective's metric is lacking). Of any other end all files but the
  // log are removed.
  void Settle(const std::string& study, const std::string& attempt_folder,
              const TrialOutcome& outcome, const ModelRank& rank);

  // An attempt that had used its time has ended, and left `model_path` with these metrics (empty:
  // nothing). It takes its place among those of its kind, not the completed ones, and what is
  // then one too many is removed.
  void SettleOvertime(const std::string& study, const Metrics& metrics,
                      const std::string& model_path, const ModelRank& rank);

  // Whichever of the two an attempt's `outcome` asks for; `best_path`: where it left its best
  // weights, "" for none.
  void SettleEnd(const TrialId& trial, const std::string& attempt_folder,
                 const TrialOutcome& outcome, const std::string& best_path, const ModelRank& rank);

  // The same for an attempt that can never be the study's best (a demonstration, one that was given
  // back or superseded): all files but the log are removed.
  void Discard(const std::string& attempt_folder);

  // Where the attempt of `lease` writes; absolute.
  std::string FolderOf(const LeaseRef& lease) const;

  // An attempt of `assignment` has ended with `result`: it is settled by the server's answer.
  void Await(const Assignment& assignment, const AttemptResult& result);

  // The server has answered the result of `lease`, or will never take it. The result of a former
  // process stays as it is where the server takes it: what it is compared by is not known any more.
  void TakeAnswer(const LeaseRef& lease, const absl::StatusOr<FinishResult>& answer);

  // An attempt begins to write to `attempt_folder`, and has ended with a result or nothing. Where
  // the process does not live to see the end, DiscardInterrupted of the next one finds it.
  void Begun(const std::string& attempt_folder) const;
  void Ended() const;

  // Discards what the attempt that the last process of this worker left in its middle has written.
  // `owed`: folders of attempts whose results wait to be told.
  void DiscardInterrupted(const std::vector<std::string>& owed);

 private:
  // `record`: the file that lists the models of one kind.
  void SettleAmong(const std::string& record, const Metrics& metrics, const std::string& model_path,
                   const ModelRank& rank);
  std::string RunningPath() const;
  std::string RecordPath(const std::string& study, const char* name) const;
  void Remove(const std::string& path) const;

  std::string runs_folder_;
  // Results that the server does not have, by their attempts' folders.
  std::map<std::string, std::pair<Assignment, AttemptResult>> unsettled_;
  std::optional<int64_t> num_kept_;
};

}  // namespace hpo::agent
