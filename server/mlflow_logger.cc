#include "server/mlflow_logger.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "common/base/steady_wait.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

constexpr absl::Duration kRequestTimeout = absl::Seconds(10);

}  // namespace

MlflowLogger::MlflowLogger(std::string uri, const MlflowLoggerOptions& options,
                           std::unique_ptr<HttpClient> http)
    : uri_(std::move(uri)),
      options_(options),
      http_(std::move(http)),
      pause_(options.first_retry) {}

MlflowLogger::~MlflowLogger() { Finish(absl::ZeroDuration()); }

void MlflowLogger::Start(Load load, LoadStudy load_study) {
  load_ = std::move(load);
  load_study_ = std::move(load_study);
  thread_ = std::thread([this] { RunLoop(); });
}

void MlflowLogger::Changed(const TrialId& trial) {
  absl::MutexLock lock(&mutex_);
  if (finishing_) return;
  if (waiting_.size() < options_.most_waiting || waiting_.contains(trial)) {
    waiting_.insert(trial);
    return;
  }
  if (num_dropped_++ == 0) {
    spdlog::warn(
        "MLflow at {}: {} trials wait already; further ones are left out. Write them "
        "later with, for each study: hpo export mlflow --to {} --study NAME",
        uri_, options_.most_waiting, uri_);
  }
}

size_t MlflowLogger::num_waiting() const {
  absl::MutexLock lock(&mutex_);
  return waiting_.size() + (busy_ ? 1 : 0);
}

void MlflowLogger::Finish(absl::Duration grace) {
  {
    absl::MutexLock lock(&mutex_);
    if (over_) return;
    finishing_ = true;
    const auto written = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return waiting_.empty() && !busy_;
    };
    if (thread_.joinable()) AwaitSteadily(mutex_, absl::Condition(&written), grace);
    over_ = true;
  }
  cancelled_ = true;
  if (thread_.joinable()) thread_.join();
  absl::MutexLock lock(&mutex_);
  const size_t missing = waiting_.size() + static_cast<size_t>(num_dropped_);
  if (missing == 0) return;
  spdlog::warn(
      "MLflow at {}: changes of {} trials could not be sent; write them with, for each study: "
      "hpo export mlflow --to {} --study NAME",
      uri_, missing, uri_);
}

void MlflowLogger::RunLoop() {
  if (http_ == nullptr) {
    http_ = MakeMlflowHttp({.timeout = kRequestTimeout, .cancelled = &cancelled_});
  }
  client_ = std::make_unique<MlflowClient>(uri_, *http_);
  TrialId trial;
  while (Next(trial)) {
    const absl::Status written = Write(trial);
    if (written.ok()) {
      Written();
    } else {
      TakeFailure(trial, written);
    }
    absl::MutexLock lock(&mutex_);
    busy_ = false;
  }
}

bool MlflowLogger::Next(TrialId& trial) {
  absl::MutexLock lock(&mutex_);
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return over_ || !waiting_.empty();
  };
  mutex_.Await(absl::Condition(&something));
  if (over_) return false;
  trial = *waiting_.begin();
  waiting_.erase(waiting_.begin());
  busy_ = true;
  return true;
}

absl::Status MlflowLogger::Write(const TrialId& trial) {
  const absl::StatusOr<TrialView> view = load_(trial);
  if (!view.ok()) return absl::InternalError(view.status().message());
  const absl::StatusOr<StudyStatus> study = load_study_(trial.study);
  if (!study.ok()) return absl::InternalError(study.status().message());
  MlflowExport& runs =
      exports_.try_emplace(trial.study, *client_, trial.study, trial.study).first->second;
  HPO_RETURN_IF_ERROR(runs.WriteStudy(*study, clock_.Now()));
  return runs.Write(*view);
}

void MlflowLogger::Written() {
  pause_ = options_.first_retry;
  if (std::exchange(away_, false)) spdlog::info("MLflow at {} answers", uri_);
}

// Away: the trial waits with the others. Refused: it is told and left out.
void MlflowLogger::TakeFailure(const TrialId& trial, const absl::Status& status) {
  const bool away = absl::IsUnavailable(status) || absl::IsCancelled(status);
  if (!away) {
    spdlog::warn(
        "trial #{} of {} is not in MLflow as it should be: {}; try again with: hpo export "
        "mlflow --study {} --to {}",
        trial.number.value, trial.study, std::string(status.message()), trial.study, uri_);
    return;
  }
  if (!std::exchange(away_, true) && absl::IsUnavailable(status)) {
    spdlog::warn("{}; trials wait, and are tried again", std::string(status.message()));
  }
  absl::MutexLock lock(&mutex_);
  waiting_.insert(trial);
  AwaitSteadily(mutex_, absl::Condition(&over_), pause_);
  pause_ = std::min(2 * pause_, options_.longest_retry);
}

}  // namespace hpo::server
