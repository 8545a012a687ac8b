#include "proto/convert/study_proto.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/base/status.h"
#include "common/study/status_fields.h"
#include "proto/convert/message_fields.h"

namespace hpo {

// Two fields, of which one is set.
template <>
inline constexpr bool kIsSent<std::optional<RegretBound>> = false;

template <>
struct MessageForm<Budget> {
  using Wire = v1::Budget;
  static Wire Write(const Budget& budget) { return ToProto(budget); }
  static absl::StatusOr<Budget> Read(const Wire& proto) { return FromProto(proto); }
};
// Its trial is named by two fields.
template <>
struct MessageForm<WorkerStatus> {
  using Wire = v1::Worker;

  static Wire Write(const WorkerStatus& worker) {
    Wire proto = ToMessage<Wire>(worker);
    if (worker.trial) {
      proto.set_study(worker.trial->study);
      proto.set_trial(worker.trial->number.value);
    }
    return proto;
  }

  static absl::StatusOr<WorkerStatus> Read(const Wire& proto) {
    HPO_ASSIGN_OR_RETURN(WorkerStatus worker, FromMessage<WorkerStatus>(proto));
    if (proto.has_trial()) {
      worker.trial = TrialId{.study = proto.study(), .number = TrialNumber{proto.trial()}};
    }
    worker.gpus = std::max<int64_t>(worker.gpus, 1);
    return worker;
  }
};

// What a Study holds; of the spec not all.
void VisitFields(Is<StudyStatus> auto& study, auto visit) {
  visit({"name"}, study.spec.name);
  visit({"objectives"}, study.spec.objectives);
  visit({"constraints"}, study.spec.constraints);
  visit({"budget"}, study.spec.budget);
  visit({"space"}, study.spec.space);
  visit({"counts"}, study.counts);
  visit({"best_trial"}, study.best_trial);
  visit({"best_value"}, study.best_value);
  visit({"best_violation"}, study.best_violation);
  visit({"wall_clock_used"}, study.wall_clock_used);
  visit({"workers"}, study.workers);
  visit({"waiting_for"}, study.waiting_for);
  visit({"task"}, study.spec.trainer.task);
  visit({"train"}, study.spec.trainer.train);
  visit({"validation"}, study.spec.trainer.validation);
  visit({"command"}, study.spec.trainer.command);
  visit({"workdir"}, study.spec.trainer.workdir);
  visit({"gpus", kIfSaid}, study.spec.trainer.gpus);
  visit({"sampler"}, study.spec.sampler.type);
  visit({"pruner"}, study.spec.pruner.type);
  visit({"seed"}, study.spec.sampler.seed);
  visit({"memory_policy"}, study.spec.memory.policy);
  visit({"created"}, study.created);
  visit({"sequence"}, study.sequence);
  visit({"warm_start"}, study.priors);
  visit({"last_proposal"}, study.last_proposal);
  // A server that knows no orders sends none.
  visit({"order", kAlways}, study.order);
  visit({"failure"}, study.failure);
  visit({"unreadable"}, study.unreadable);
  visit({"attributes"}, study.attributes);
  visit({"blocked"}, study.blocked);
  visit({"runnable"}, study.runnable);
  visit({"dry_runs", kAlways}, study.dry_runs);
  visit({"time_by_use", kAlways}, study.time_by_use);
}

v1::StudyOrder ToProto(StudyOrder order) { return ToWire<v1::StudyOrder>(order); }

absl::StatusOr<StudyOrder> FromProto(v1::StudyOrder proto) { return FromWire<StudyOrder>(proto); }

v1::Budget ToProto(const Budget& budget) {
  v1::Budget proto = ToMessage<v1::Budget>(budget);
  if (budget.regret_bound && budget.regret_bound->gap) {
    proto.set_regret_gap(*budget.regret_bound->gap);
  } else if (budget.regret_bound) {
    proto.set_regret_auto(true);
  }
  return proto;
}

Budget FromProto(const v1::Budget& proto) {
  Budget budget = FromMessage<Budget>(proto).value();
  if (proto.has_regret_gap()) budget.regret_bound = RegretBound{.gap = proto.regret_gap()};
  if (proto.has_regret_auto()) budget.regret_bound = RegretBound{};
  return budget;
}

v1::Worker ToProto(const WorkerStatus& worker) { return MessageForm<WorkerStatus>::Write(worker); }

absl::StatusOr<WorkerStatus> FromProto(const v1::Worker& proto) {
  return MessageForm<WorkerStatus>::Read(proto);
}

v1::Study ToProto(const StudyStatus& study) {
  v1::Study proto = ToMessage<v1::Study>(study);
  proto.set_state(study.finished ? v1::STUDY_STATE_FINISHED : v1::STUDY_STATE_ACTIVE);
  return proto;
}

absl::StatusOr<StudyStatus> FromProto(const v1::Study& proto) {
  HPO_ASSIGN_OR_RETURN(StudyStatus study, FromMessage<StudyStatus>(proto));
  study.finished = proto.state() == v1::STUDY_STATE_FINISHED;
  return study;
}

}  // namespace hpo
