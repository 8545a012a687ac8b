#include "worker/agent/report_queue.h"

#include "spdlog/spdlog.h"

namespace hpo {

void ReportQueue::AddMeasurement(const Measurement& measurement) {
  measurements_.push_back(measurement);
  due_ = absl::ZeroDuration();
}

void ReportQueue::AddPlan(const MemoryPlan& plan) {
  new_plan_ = plan;
  ++num_replans_;
  due_ = absl::ZeroDuration();
}

void ReportQueue::AddOom() {
  ++num_ooms_;
  due_ = absl::ZeroDuration();
}

ReportAnswer ReportQueue::SendIfDue() {
  if (!due_ || clock_.Monotonic() < *due_) return {};
  due_.reset();
  const AttemptReport report{
      .lease = lease_, .measurements = measurements_, .new_plan = new_plan_, .num_ooms = num_ooms_};
  const std::string session = session_.current().session;
  const absl::StatusOr<ReportResult> result = client_.ReportMeasurements(session, report);
  if (!result.ok()) return TakeFailure(result.status(), session);
  forgotten_ = false;
  retry_.Reset();
  measurements_.clear();
  new_plan_.reset();
  if (!result->should_stop) return {};
  return {ReportAnswer::Verdict::kStop, result->pruner, result->why};
}

ReportAnswer ReportQueue::TakeFailure(const absl::Status& status, const std::string& session) {
  if (absl::IsAborted(status) || (absl::IsNotFound(status) && forgotten_)) {
    return {ReportAnswer::Verdict::kLeaseLost, "", std::string(status.message())};
  }
  if (absl::IsNotFound(status)) {
    // The server may have been restarted: it knows the lease again once the worker is registered.
    forgotten_ = session_.Renew(session, client_).ok();
  } else if (!IsServerAway(status)) {
    spdlog::warn("trial #{}: the server refused measurements: {}", lease_.trial.number.value,
                 status.ToString());
    measurements_.clear();
    return {};
  }
  due_ = clock_.Monotonic() + retry_.Next();
  return {};
}

}  // namespace hpo
