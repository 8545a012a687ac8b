#include "worker/agent/session/report_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"
#include "worker/agent/session/message_size.h"
#include "worker/agent/session/rpc_reaction.h"

namespace hpo::agent {

void ReportQueue::AddMeasurement(const Measurement& measurement) {
  if (num_measurements_ == kMeasurementLimit.most) {
    spdlog::warn("trial #{}: the trainer has sent {} measurements; further ones are not reported",
                 lease_.trial.number.value, num_measurements_);
  }
  if (num_measurements_++ >= kMeasurementLimit.most) return;
  measurements_.push_back(measurement);
  waiting_bytes_ += MessageBytes(measurement);
  if (waiting_bytes_ > kMostWaitingBytes) LeaveOutSome();
  SendSoon();
}

void ReportQueue::AddPlan(const MemoryPlan& plan) {
  new_plan_ = plan;
  ++num_replans_;
  SendSoon();
}

void ReportQueue::AddOom() {
  ++num_ooms_;
  SendSoon();
}

// A report that was refused has its pause first.
void ReportQueue::SendSoon() {
  if (refused_ == absl::StatusCode::kOk) due_ = absl::ZeroDuration();
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

void ReportQueue::AddAttributes(const Attributes& attributes) {
  for (const auto& [key, value] : attributes) {
    const bool room = known_attributes_.size() < static_cast<size_t>(kAttributeLimit.most);
    absl::Status checked = CheckedAttributes({{key, value}}).status();
    if (!room && !known_attributes_.contains(key)) {
      checked = absl::InvalidArgumentError(absl::StrCat("attribute ", key, ": expected at most ",
                                                        kAttributeLimit.most,
                                                        " attributes of an attempt"));
    }
    if (!checked.ok()) {
      spdlog::warn("trial #{}: not recorded: {}", lease_.trial.number.value,
                   std::string(checked.message()));
      continue;
    }
    known_attributes_.insert(key);
    attributes_[key] = value;
    if (!due_) due_ = clock_.Monotonic() + kRecordDelay;
  }
}

void ReportQueue::LeaveOutSome() {
  std::vector<Measurement> kept;
  waiting_bytes_ = 0;
  for (size_t i = 1; i < measurements_.size(); i += 2) {
    waiting_bytes_ += MessageBytes(measurements_[i]);
    kept.push_back(std::move(measurements_[i]));
  }
  spdlog::warn(
      "trial #{}: more than {} of measurements wait for the server: every second one is dropped, "
      "{} remain",
      lease_.trial.number.value, FormatBytes(Bytes{static_cast<int64_t>(kMostWaitingBytes)}),
      kept.size());
  measurements_ = std::move(kept);
}

void ReportQueue::SendLast() {
  do {
    if (measurements_.empty() && memory_records_.empty() && attributes_.empty()) return;
    due_ = absl::ZeroDuration();
    SendIfDue();
  } while (refused_ == absl::StatusCode::kOk && due_ == absl::ZeroDuration());
}

ReportAnswer ReportQueue::SendIfDue() {
  if (!due_ || clock_.Monotonic() < *due_) return {};
  due_.reset();
  const auto part = static_cast<std::ptrdiff_t>(CountForOnePart(measurements_));
  const AttemptReport report{.lease = lease_,
                             .measurements = {measurements_.begin(), measurements_.begin() + part},
                             .new_plan = new_plan_,
                             .num_ooms = num_ooms_,
                             .memory_records = memory_records_,
                             .attributes = attributes_};
  const std::string session = session_.current().session;
  const absl::StatusOr<ReportResult> result = client_.ReportMeasurements(session, report);
  if (!result.ok()) return TakeFailure(result.status(), report, session);
  retry_.Reset();
  refused_ = absl::StatusCode::kOk;
  Sent(report);
  if (!result->should_stop) return {.directive = result->directive};
  return {ReportAnswer::Verdict::kStop, result->pruner, result->why, result->directive};
}

void ReportQueue::Sent(const AttemptReport& report) {
  const auto part = static_cast<std::ptrdiff_t>(report.measurements.size());
  measurements_.erase(measurements_.begin(), measurements_.begin() + part);
  for (const Measurement& measurement : report.measurements) {
    waiting_bytes_ -= MessageBytes(measurement);
  }
  memory_records_.clear();
  attributes_.clear();
  new_plan_.reset();
  if (!measurements_.empty()) due_ = absl::ZeroDuration();
}

ReportAnswer ReportQueue::TakeFailure(const absl::Status& status, const AttemptReport& report,
                                      const std::string& session) {
  switch (ReactionTo(Rpc::kReportMeasurements, status, lease_.database)) {
    case Reaction::kGiveUp:
      return {ReportAnswer::Verdict::kLeaseLost, "", std::string(status.message()),
              Directive::kLeaseLost};
    case Reaction::kSetAside:
      spdlog::warn(
          "trial #{}: the server refuses {} measurements, {} memory records and {} attributes; "
          "they are dropped: {}",
          lease_.trial.number.value, report.measurements.size(), report.memory_records.size(),
          report.attributes.size(), status.ToString());
      refused_ = absl::StatusCode::kOk;
      Sent(report);
      return {};
    case Reaction::kRegisterAgain:
      // The server may have been restarted: it knows the lease again once the worker is registered.
      session_.Renew(session, client_).IgnoreError();
      break;
    default:
      NoteRefusal(status);
  }
  refused_ = status.code();
  due_ = clock_.Monotonic() + retry_.Next();
  return {};
}

// Once for each code in a row; the loop says when the server is away.
void ReportQueue::NoteRefusal(const absl::Status& status) {
  if (IsServerAway(status) || refused_ == status.code()) return;
  spdlog::warn(
      "trial #{}: the server refuses a report, which is sent again; {} measurements wait: {}",
      lease_.trial.number.value, measurements_.size(), status.ToString());
}

}  // namespace hpo::agent
