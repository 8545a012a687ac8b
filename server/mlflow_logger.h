// Writes trials to an MLflow tracking server as they change: live logging by choice.
//
// Never in a study's way: a change costs its caller one entry in a set of trials, written by a
// thread of its own from the trial's state at that time. While MLflow is away the set waits and is
// tried again with growing pauses; what MLflow refuses, and what was not sent in the end, is told
// in the log: `hpo export mlflow` completes it.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/interop/mlflow/mlflow_export.h"

namespace hpo::server {

struct MlflowLoggerOptions {
  absl::Duration first_retry = absl::Seconds(1);
  absl::Duration longest_retry = absl::Minutes(1);
  size_t most_waiting = 10000;  // trials
};

// Thread-safe.
class MlflowLogger {
 public:
  using Load = std::function<absl::StatusOr<TrialView>(const TrialId&)>;
  using LoadStudy = std::function<absl::StatusOr<StudyStatus>(const std::string& name)>;

  // `uri`: see CheckMlflowUri. `http`: instead of the network (tests).
  explicit MlflowLogger(std::string uri, const MlflowLoggerOptions& options = {},
                        std::unique_ptr<HttpClient> http = nullptr);
  ~MlflowLogger();

  // Begins to write; `load` reads a trial as it is now, `load_study` its study, for the run of the
  // study's own. Both are called until Finish has returned.
  void Start(Load load, LoadStudy load_study);

  // The trial is to be written (again). Never blocks on the network. Beyond `most_waiting` trials
  // further ones are dropped and counted.
  void Changed(const TrialId& trial);

  // Takes nothing more, gives what waits up to `grace`, tells what was not sent. Idempotent.
  void Finish(absl::Duration grace);

  // Trials that wait, those that were dropped left out.
  size_t num_waiting() const;

 private:
  void RunLoop();
  // Waits for a trial to write; false: it is over.
  bool Next(TrialId& trial);
  absl::Status Write(const TrialId& trial);
  void TakeFailure(const TrialId& trial, const absl::Status& status);
  void Written();

  const std::string uri_;
  const MlflowLoggerOptions options_;
  std::atomic<bool> cancelled_ = false;
  // Of the thread alone.
  std::unique_ptr<HttpClient> http_;
  std::unique_ptr<MlflowClient> client_;
  std::map<std::string, MlflowExport> exports_;  // by study
  Load load_;
  LoadStudy load_study_;
  const SystemClock clock_;
  absl::Duration pause_;
  bool away_ = false;

  mutable absl::Mutex mutex_;
  std::set<TrialId> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t num_dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;       // a trial is being written
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;  // nothing more is taken
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hpo::server
