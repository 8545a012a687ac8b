#include "worker/agent/report_queue.h"

#include <algorithm>
#include <utility>

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

void ReportQueue::AddMemoryRecord(MemoryRecord record) {
  const size_t longest = std::max(record.stage.size(), record.growth_stage.size());
  if (record.stage.empty() || longest > MemoryRecord::kLongestStage || record.step < 0) {
    spdlog::warn(
        "trial #{}: a memory line is not recorded: expected a stage of 1 to {} bytes and a "
        "step of at least 0, got {} bytes and step {}",
        lease_.trial.number.value, MemoryRecord::kLongestStage, longest, record.step);
    return;
  }
  if (num_records_ == kMostRecords) {
    spdlog::warn("trial #{}: the trainer has sent {} memory lines; further ones are not recorded",
                 lease_.trial.number.value, kMostRecords);
  }
  record.sequence = num_records_++;
  if (record.sequence >= kMostRecords) return;
  memory_records_.push_back(std::move(record));
  if (!due_) due_ = clock_.Monotonic() + kRecordDelay;
}

void ReportQueue::SendLast() {
  if (measurements_.empty() && memory_records_.empty()) return;
  due_ = absl::ZeroDuration();
  SendIfDue();
}

ReportAnswer ReportQueue::SendIfDue() {
  if (!due_ || clock_.Monotonic() < *due_) return {};
  due_.reset();
  const AttemptReport report{.lease = lease_,
                             .measurements = measurements_,
                             .new_plan = new_plan_,
                             .num_ooms = num_ooms_,
                             .memory_records = memory_records_};
  const std::string session = session_.current().session;
  const absl::StatusOr<ReportResult> result = client_.ReportMeasurements(session, report);
  if (!result.ok()) return TakeFailure(result.status(), session);
  forgotten_ = false;
  retry_.Reset();
  measurements_.clear();
  memory_records_.clear();
  new_plan_.reset();
  if (!result->should_stop) return {.directive = result->directive};
  return {ReportAnswer::Verdict::kStop, result->pruner, result->why, result->directive};
}

ReportAnswer ReportQueue::TakeFailure(const absl::Status& status, const std::string& session) {
  if (absl::IsAborted(status) || (absl::IsNotFound(status) && forgotten_)) {
    return {ReportAnswer::Verdict::kLeaseLost, "", std::string(status.message()),
            Directive::kLeaseLost};
  }
  if (absl::IsNotFound(status)) {
    // The server may have been restarted: it knows the lease again once the worker is registered.
    forgotten_ = session_.Renew(session, client_).ok();
  } else if (!IsServerAway(status)) {
    spdlog::warn("trial #{}: the server refused a report: {}", lease_.trial.number.value,
                 status.ToString());
    measurements_.clear();
    memory_records_.clear();
    return {};
  }
  due_ = clock_.Monotonic() + retry_.Next();
  return {};
}

}  // namespace hpo
