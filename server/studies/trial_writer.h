// Writes trials: one transaction, then what it changed is published to the study's memory.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "server/placement/live_calibration.h"
#include "server/storage/answer_store.h"
#include "server/storage/calibration_store.h"
#include "server/storage/store.h"
#include "server/storage/study_rows.h"
#include "server/storage/study_store.h"
#include "server/studies/study_runtime.h"
#include "server/trials/trial_change.h"
#include "server/trials/work_signal.h"

namespace hpo::server {

// The event of measurements (TrialEvent::kind).
inline constexpr char kMeasured[] = "measured";

// One write as its work sees it. Lives as long as the work runs.
class TrialTransaction : public StudyRows {
 public:
  TrialTransaction(Database& database, int64_t study_id, const std::string& study, absl::Time time)
      : StudyRows(database, study_id, study),
        studies(database),
        answers(database),
        now(time),
        residuals_(database) {}

  StudyStore studies;
  AnswerStore answers;
  const absl::Time now;

  // To be called once per trial changed, with the kind of its event (TrialEvent::kind).
  void Changed(TrialNumber trial, std::string kind) {
    changed_.emplace_back(trial, std::move(kind));
  }
  // The same for measurements alone, those that were new: the attempt's others need not be read.
  void Measured(TrialNumber trial, AttemptNumber attempt, std::vector<Measurement> added) {
    changed_.emplace_back(trial, kMeasured);
    measured_[changed_.size() - 1] = {
        .sequence = 0, .trial = trial, .attempt = attempt, .added = std::move(added)};
  }
  const std::vector<std::pair<TrialNumber, std::string>>& changed() const { return changed_; }
  // By their place in changed().
  std::map<size_t, TrialMeasured>& measured() { return measured_; }

  // For what changes neither the history nor what anybody waits for: no event of the study.
  void Noted(TrialNumber trial) { noted_.push_back(trial); }
  const std::vector<TrialNumber>& noted() const { return noted_; }

  // What the study is to do from here on; stored and published with the rest, as one event.
  void Order(const OrderedStudy& order) { order_ = order; }
  const std::optional<OrderedStudy>& order() const { return order_; }

  // Adds to what calibration learns from. At most once per attempt.
  absl::Status Teach(int64_t study_id, const ResidualRecord& record);
  const std::vector<CalibrationStore::Stored>& taught() const { return taught_; }

 private:
  CalibrationStore residuals_;
  std::vector<std::pair<TrialNumber, std::string>> changed_;
  std::map<size_t, TrialMeasured> measured_;
  std::vector<CalibrationStore::Stored> taught_;
  std::vector<TrialNumber> noted_;
  std::optional<OrderedStudy> order_;
};

// Reads the trial as `transaction` left it. With attempts, measurements and lease.
absl::StatusOr<TrialChange> LoadChange(const StudyRows& rows, TrialNumber number, int64_t sequence,
                                       std::string kind);

// Runs `read` over one committed state of the study's rows.
absl::Status ReadRows(const Store& store, const StudyRuntime& study,
                      const std::function<absl::Status(const StudyRows&)>& read);

// Thread-safe.
class TrialWriter {
 public:
  using Work = std::function<absl::Status(TrialTransaction&)>;

  // `work` is told of commits that may give a waiting worker something to do, `on_trial_changed`,
  // where there is one, of every trial that a commit has changed. The others outlive the writer.
  TrialWriter(Store& store, const Clock& clock, LiveCalibration& calibration, WorkSignal& work,
              std::function<void(const TrialId&)> on_trial_changed)
      : store_(store),
        clock_(clock),
        calibration_(calibration),
        work_(work),
        on_trial_changed_(std::move(on_trial_changed)) {}

  // Durable and published when it returns OK. Events are appended in the order of Changed().
  // Fails with what `work` returned, or with Unavailable if the study was read again meanwhile or
  // its database cannot be written; then nothing was written or published.
  absl::Status Write(StudyRuntime& study, const Work& work);

 private:
  Store& store_;
  const Clock& clock_;
  LiveCalibration& calibration_;
  WorkSignal& work_;
  const std::function<void(const TrialId&)> on_trial_changed_;
};

}  // namespace hpo::server
