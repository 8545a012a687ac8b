// Trained models on this worker's disk. Of each study the best one is kept, so that a hundred
// trials do not fill the disk; the study's best trial is then the best of some worker's best. Only
// files below the runs folder are ever removed. One thread.
#pragma once

#include <string>

#include "common/study.h"
#include "common/trial.h"

namespace hpo {

class KeptModels {
 public:
  // `keep_all`: remove nothing.
  KeptModels(std::string runs_folder, bool keep_all)
      : runs_folder_(std::move(runs_folder)), keep_all_(keep_all) {}

  // An attempt of `study` that wrote to `attempt_folder` has ended, and the server knows. A
  // completed one is compared with the best so far by the objective's metric, and the worse model
  // is removed (the newer one of equals; neither where one lacks the metric). Of any other end all
  // files but the log are removed.
  void Settle(const std::string& study, const std::string& attempt_folder,
              const TrialOutcome& outcome, const Objective& objective);

  // The same for an attempt that can never be the study's best (a demonstration): all files but the
  // log are removed.
  void Discard(const std::string& attempt_folder);

 private:
  void SettleCompleted(const std::string& study, const Completed& completed,
                       const Objective& objective);
  void Remove(const std::string& path) const;

  std::string runs_folder_;
  bool keep_all_;
};

}  // namespace hpo
