#include "proto/convert/outcome_proto.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "proto/convert/enum_pairs.h"

namespace hpo {
namespace {

constexpr EnumPairs<Precision, v1::Precision, 3> kPrecisions = {{
    {Precision::kFloat32, v1::PRECISION_FLOAT32},
    {Precision::kBfloat16, v1::PRECISION_BFLOAT16},
    {Precision::kFloat16, v1::PRECISION_FLOAT16},
}};

constexpr EnumPairs<OomKind, v1::OomKind, 5> kOomKinds = {{
    {OomKind::kConfiguration, v1::OOM_KIND_CONFIGURATION},
    {OomKind::kDirtyDevice, v1::OOM_KIND_DIRTY_DEVICE},
    {OomKind::kFragmentation, v1::OOM_KIND_FRAGMENTATION},
    {OomKind::kLatePeak, v1::OOM_KIND_LATE_PEAK},
    {OomKind::kHost, v1::OOM_KIND_HOST},
}};

constexpr EnumPairs<FailureClass, v1::FailureClass, 10> kFailureClasses = {{
    {FailureClass::kBadData, v1::FAILURE_CLASS_BAD_DATA},
    {FailureClass::kBadModel, v1::FAILURE_CLASS_BAD_MODEL},
    {FailureClass::kBadConfiguration, v1::FAILURE_CLASS_BAD_CONFIGURATION},
    {FailureClass::kDiverged, v1::FAILURE_CLASS_DIVERGED},
    {FailureClass::kTrainerCrashed, v1::FAILURE_CLASS_TRAINER_CRASHED},
    {FailureClass::kTrainerKilled, v1::FAILURE_CLASS_TRAINER_KILLED},
    {FailureClass::kDeviceLost, v1::FAILURE_CLASS_DEVICE_LOST},
    {FailureClass::kProtocol, v1::FAILURE_CLASS_PROTOCOL},
    {FailureClass::kWorkerLost, v1::FAILURE_CLASS_WORKER_LOST},
    {FailureClass::kInternal, v1::FAILURE_CLASS_INTERNAL},
}};

void Set(const Completed& completed, v1::Outcome& proto) {
  v1::Completed& out = *proto.mutable_completed();
  out.mutable_metrics()->insert(completed.metrics.begin(), completed.metrics.end());
  out.set_model_path(completed.model_path);
}

void Set(const StoppedByPruner& stopped, v1::Outcome& proto) {
  v1::StoppedByPruner& out = *proto.mutable_stopped_by_pruner();
  out.set_pruner(stopped.pruner);
  out.set_step(stopped.step);
  out.mutable_metrics()->insert(stopped.metrics.begin(), stopped.metrics.end());
}

void Set(const OutOfMemory& oom, v1::Outcome& proto) {
  v1::OutOfMemory& out = *proto.mutable_out_of_memory();
  out.set_kind(ToWire(kOomKinds, oom.kind));
  out.set_predicted(oom.predicted);
  out.set_requested_bytes(oom.requested.count);
  out.set_peak_bytes(oom.peak.count);
  out.set_limit_bytes(oom.limit.count);
  out.set_needed_bytes(oom.needed.count);
  out.set_phase(oom.phase);
  out.set_step(oom.step);
  *out.mutable_plan() = ToProto(oom.plan);
  out.set_error_message(oom.message);
  out.set_error_traceback(oom.traceback);
}

void Set(const Failed& failed, v1::Outcome& proto) {
  proto.mutable_failed()->set_failure_class(ToWire(kFailureClasses, failed.failure_class));
  proto.mutable_failed()->set_message(failed.message);
}

void Set(const Cancelled& cancelled, v1::Outcome& proto) {
  proto.mutable_cancelled()->set_reason(cancelled.reason);
}

absl::StatusOr<TrialOutcome> OomFromProto(const v1::OutOfMemory& proto) {
  OutOfMemory oom{.predicted = proto.predicted(),
                  .requested = Bytes{proto.requested_bytes()},
                  .peak = Bytes{proto.peak_bytes()},
                  .limit = Bytes{proto.limit_bytes()},
                  .needed = Bytes{proto.needed_bytes()},
                  .phase = proto.phase(),
                  .step = proto.step(),
                  .message = proto.error_message(),
                  .traceback = proto.error_traceback()};
  HPO_ASSIGN_OR_RETURN(oom.kind, FromWire(kOomKinds, proto.kind(), "a kind of out-of-memory"));
  if (proto.has_plan()) {
    HPO_ASSIGN_OR_RETURN(oom.plan, FromProto(proto.plan()));
  }
  return oom;
}

absl::StatusOr<TrialOutcome> FailedFromProto(const v1::Failed& proto) {
  Failed failed{.message = proto.message()};
  HPO_ASSIGN_OR_RETURN(failed.failure_class,
                       FromWire(kFailureClasses, proto.failure_class(), "a failure class"));
  return failed;
}

}  // namespace

v1::MemoryPlan ToProto(const MemoryPlan& plan) {
  v1::MemoryPlan proto;
  proto.set_effective_batch(plan.effective_batch);
  proto.set_micro_batch(plan.micro_batch);
  proto.set_checkpointing(plan.checkpointing);
  proto.set_precision(ToWire(kPrecisions, plan.precision));
  return proto;
}

absl::StatusOr<MemoryPlan> FromProto(const v1::MemoryPlan& proto) {
  if (proto.micro_batch() < 1 || proto.micro_batch() > proto.effective_batch()) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory plan: expected 1 <= micro_batch <= effective_batch, got micro_batch ",
                     proto.micro_batch(), " and effective_batch ", proto.effective_batch()));
  }
  MemoryPlan plan{.effective_batch = proto.effective_batch(),
                  .micro_batch = proto.micro_batch(),
                  .checkpointing = proto.checkpointing()};
  if (proto.precision() != v1::PRECISION_UNSPECIFIED) {
    HPO_ASSIGN_OR_RETURN(plan.precision, FromWire(kPrecisions, proto.precision(), "a precision"));
  }
  return plan;
}

v1::Measurement ToProto(const Measurement& measurement) {
  v1::Measurement proto;
  proto.set_step(measurement.step);
  proto.set_epoch(measurement.epoch);
  proto.mutable_metrics()->insert(measurement.metrics.begin(), measurement.metrics.end());
  return proto;
}

Measurement FromProto(const v1::Measurement& proto) {
  return Measurement{.step = proto.step(),
                     .epoch = proto.epoch(),
                     .metrics = Metrics(proto.metrics().begin(), proto.metrics().end())};
}

v1::MemoryReport ToProto(const MemoryReport& report) {
  v1::MemoryReport proto;
  proto.set_baseline_bytes(report.baseline.count);
  proto.set_live_peak_bytes(report.live_peak.count);
  proto.set_reserved_peak_bytes(report.reserved_peak.count);
  proto.set_device_peak_bytes(report.device_peak.count);
  proto.set_limit_bytes(report.limit.count);
  proto.set_peak_phase(report.peak_phase);
  proto.set_num_ooms(report.num_ooms);
  proto.set_num_replans(report.num_replans);
  proto.set_growth_bytes(report.growth.count);
  proto.set_growth_stage(report.growth_stage);
  return proto;
}

MemoryReport FromProto(const v1::MemoryReport& proto) {
  return MemoryReport{.baseline = Bytes{proto.baseline_bytes()},
                      .live_peak = Bytes{proto.live_peak_bytes()},
                      .reserved_peak = Bytes{proto.reserved_peak_bytes()},
                      .device_peak = Bytes{proto.device_peak_bytes()},
                      .limit = Bytes{proto.limit_bytes()},
                      .peak_phase = proto.peak_phase(),
                      .num_ooms = proto.num_ooms(),
                      .num_replans = proto.num_replans(),
                      .growth = Bytes{proto.growth_bytes()},
                      .growth_stage = proto.growth_stage()};
}

v1::MemoryRecord ToProto(const MemoryRecord& record) {
  v1::MemoryRecord proto;
  proto.set_sequence(record.sequence);
  proto.set_stage(record.stage);
  proto.set_step(record.step);
  proto.set_allocated_bytes(record.allocated.count);
  proto.set_reserved_bytes(record.reserved.count);
  proto.set_free_bytes(record.free.count);
  proto.set_total_bytes(record.total.count);
  proto.set_peak_bytes(record.peak.count);
  proto.set_predicted_bytes(record.predicted.count);
  proto.set_predicted_reserved_bytes(record.predicted_reserved.count);
  proto.set_needed_bytes(record.needed.count);
  if (record.plan) *proto.mutable_plan() = ToProto(*record.plan);
  proto.set_resident_bytes(record.resident.count);
  proto.set_growth_bytes(record.growth.count);
  proto.set_growth_stage(record.growth_stage);
  return proto;
}

absl::StatusOr<MemoryRecord> FromProto(const v1::MemoryRecord& proto) {
  if (proto.stage().empty()) {
    return absl::InvalidArgumentError("memory record: expected a stage, got none");
  }
  MemoryRecord record{.stage = proto.stage(),
                      .allocated = Bytes{proto.allocated_bytes()},
                      .reserved = Bytes{proto.reserved_bytes()},
                      .free = Bytes{proto.free_bytes()},
                      .total = Bytes{proto.total_bytes()},
                      .peak = Bytes{proto.peak_bytes()},
                      .predicted = Bytes{proto.predicted_bytes()},
                      .predicted_reserved = Bytes{proto.predicted_reserved_bytes()},
                      .needed = Bytes{proto.needed_bytes()},
                      .plan = std::nullopt,
                      .step = proto.step(),
                      .resident = Bytes{proto.resident_bytes()},
                      .growth = Bytes{proto.growth_bytes()},
                      .growth_stage = proto.growth_stage(),
                      .sequence = proto.sequence()};
  if (proto.has_plan()) {
    HPO_ASSIGN_OR_RETURN(record.plan, FromProto(proto.plan()));
  }
  return record;
}

v1::Outcome ToProto(const TrialOutcome& outcome) {
  v1::Outcome proto;
  std::visit([&proto](const auto& held) { Set(held, proto); }, outcome);
  return proto;
}

absl::StatusOr<TrialOutcome> FromProto(const v1::Outcome& proto) {
  switch (proto.kind_case()) {
    case v1::Outcome::kCompleted: {
      const v1::Completed& in = proto.completed();
      return Completed{.metrics = Metrics(in.metrics().begin(), in.metrics().end()),
                       .model_path = in.model_path()};
    }
    case v1::Outcome::kStoppedByPruner: {
      const v1::StoppedByPruner& in = proto.stopped_by_pruner();
      return StoppedByPruner{.pruner = in.pruner(),
                             .step = in.step(),
                             .metrics = Metrics(in.metrics().begin(), in.metrics().end())};
    }
    case v1::Outcome::kOutOfMemory:
      return OomFromProto(proto.out_of_memory());
    case v1::Outcome::kFailed:
      return FailedFromProto(proto.failed());
    case v1::Outcome::kCancelled:
      return Cancelled{.reason = proto.cancelled().reason()};
    case v1::Outcome::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "outcome: expected completed, stopped_by_pruner, out_of_memory, failed or cancelled, got "
      "none of them");
}

}  // namespace hpo
