#include "proto/convert/study_proto.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "proto/convert/enum_pairs.h"
#include "proto/convert/params_proto.h"
#include "proto/convert/time_proto.h"

namespace hpo {
namespace {

constexpr EnumPairs<Direction, v1::Direction, 2> kDirections = {{
    {Direction::kMinimize, v1::DIRECTION_MINIMIZE},
    {Direction::kMaximize, v1::DIRECTION_MAXIMIZE},
}};

constexpr EnumPairs<StudyOrder, v1::StudyOrder, 3> kOrders = {{
    {StudyOrder::kRun, v1::STUDY_ORDER_RUN},
    {StudyOrder::kPause, v1::STUDY_ORDER_PAUSE},
    {StudyOrder::kStop, v1::STUDY_ORDER_STOP},
}};

constexpr std::pair<MemoryPolicy, absl::string_view> kPolicies[] = {
    {MemoryPolicy::kPlan, "plan"},
    {MemoryPolicy::kStrict, "strict"},
    {MemoryPolicy::kOff, "off"},
};

}  // namespace

static v1::TrialCounts ToProto(const TrialCounts& counts) {
  v1::TrialCounts proto;
  proto.set_queued(counts.queued);
  proto.set_running(counts.running);
  proto.set_completed(counts.completed);
  proto.set_pruned(counts.pruned);
  proto.set_failed(counts.failed);
  proto.set_cancelled(counts.cancelled);
  proto.set_oom_met(counts.oom_met);
  proto.set_oom_predicted(counts.oom_predicted);
  proto.set_oom_recovered(counts.oom_recovered);
  proto.set_demonstration(counts.demonstration);
  proto.set_imported(counts.imported);
  proto.set_infeasible(counts.infeasible);
  return proto;
}

static TrialCounts FromProto(const v1::TrialCounts& proto) {
  return TrialCounts{.queued = proto.queued(),
                     .running = proto.running(),
                     .completed = proto.completed(),
                     .pruned = proto.pruned(),
                     .failed = proto.failed(),
                     .cancelled = proto.cancelled(),
                     .oom_met = proto.oom_met(),
                     .oom_predicted = proto.oom_predicted(),
                     .oom_recovered = proto.oom_recovered(),
                     .demonstration = proto.demonstration(),
                     .imported = proto.imported(),
                     .infeasible = proto.infeasible()};
}

static v1::Worker ToProto(const WorkerStatus& worker) {
  v1::Worker proto;
  proto.set_name(worker.name);
  proto.set_device(worker.device);
  proto.set_capacity_bytes(worker.capacity.count);
  proto.set_alive(worker.alive);
  proto.set_notice(worker.notice);
  if (worker.trial) {
    proto.set_study(worker.trial->study);
    proto.set_trial(worker.trial->number.value);
  }
  if (worker.last_heartbeat != absl::InfinitePast()) {
    *proto.mutable_last_heartbeat() = ToProto(worker.last_heartbeat);
  }
  return proto;
}

static WorkerStatus FromProto(const v1::Worker& proto) {
  WorkerStatus worker{.name = proto.name(),
                      .device = proto.device(),
                      .capacity = Bytes{proto.capacity_bytes()},
                      .alive = proto.alive(),
                      .notice = proto.notice()};
  if (proto.has_trial()) {
    worker.trial = TrialId{.study = proto.study(), .number = TrialNumber{proto.trial()}};
  }
  if (proto.has_last_heartbeat()) worker.last_heartbeat = FromProto(proto.last_heartbeat());
  return worker;
}

static v1::PriorStudy ToProto(const PriorStatus& prior) {
  v1::PriorStudy proto;
  proto.set_study(prior.study);
  proto.set_trials(prior.num_trials);
  proto.set_skipped(prior.num_skipped);
  proto.set_why_skipped(prior.why_skipped);
  return proto;
}

static PriorStatus FromProto(const v1::PriorStudy& proto) {
  return PriorStatus{.study = proto.study(),
                     .num_trials = proto.trials(),
                     .num_skipped = proto.skipped(),
                     .why_skipped = proto.why_skipped()};
}

v1::Objective ToProto(const Objective& objective) {
  v1::Objective proto;
  proto.set_metric(objective.metric);
  proto.set_direction(ToWire(kDirections, objective.direction));
  return proto;
}

absl::StatusOr<Objective> FromProto(const v1::Objective& proto) {
  Objective objective{.metric = proto.metric()};
  HPO_ASSIGN_OR_RETURN(objective.direction,
                       FromWire(kDirections, proto.direction(), "a direction"));
  return objective;
}

v1::StudyOrder ToProto(StudyOrder order) { return ToWire(kOrders, order); }

absl::StatusOr<StudyOrder> FromProto(v1::StudyOrder proto) {
  return FromWire(kOrders, proto, "an order to a study");
}

v1::MetricConstraint ToProto(const MetricConstraint& constraint) {
  v1::MetricConstraint proto;
  proto.set_metric(constraint.metric);
  if (constraint.at_least) proto.set_at_least(*constraint.at_least);
  if (constraint.at_most) proto.set_at_most(*constraint.at_most);
  return proto;
}

MetricConstraint FromProto(const v1::MetricConstraint& proto) {
  MetricConstraint constraint{.metric = proto.metric()};
  if (proto.has_at_least()) constraint.at_least = proto.at_least();
  if (proto.has_at_most()) constraint.at_most = proto.at_most();
  return constraint;
}

v1::Budget ToProto(const Budget& budget) {
  v1::Budget proto;
  if (budget.trials) proto.set_trials(*budget.trials);
  if (budget.wall_clock) *proto.mutable_wall_clock() = ToProto(*budget.wall_clock);
  if (budget.trial_wall_clock) {
    *proto.mutable_trial_wall_clock() = ToProto(*budget.trial_wall_clock);
  }
  if (budget.no_progress) proto.set_no_progress(*budget.no_progress);
  if (budget.regret_bound && budget.regret_bound->gap) {
    proto.set_regret_gap(*budget.regret_bound->gap);
  } else if (budget.regret_bound) {
    proto.set_regret_auto(true);
  }
  proto.set_failures_in_a_row(budget.failures_in_a_row);
  if (budget.failed_share) proto.set_failed_share(*budget.failed_share);
  if (budget.target) proto.set_target(*budget.target);
  return proto;
}

Budget FromProto(const v1::Budget& proto) {
  Budget budget;
  if (proto.has_trials()) budget.trials = proto.trials();
  if (proto.has_wall_clock()) budget.wall_clock = FromProto(proto.wall_clock());
  if (proto.has_trial_wall_clock()) budget.trial_wall_clock = FromProto(proto.trial_wall_clock());
  if (proto.has_no_progress()) budget.no_progress = proto.no_progress();
  if (proto.has_regret_gap()) budget.regret_bound = RegretBound{.gap = proto.regret_gap()};
  if (proto.has_regret_auto()) budget.regret_bound = RegretBound{};
  if (proto.has_failures_in_a_row()) budget.failures_in_a_row = proto.failures_in_a_row();
  if (proto.has_failed_share()) budget.failed_share = proto.failed_share();
  if (proto.has_target()) budget.target = proto.target();
  return budget;
}

absl::string_view WireName(MemoryPolicy policy) {
  for (const auto& [known, name] : kPolicies) {
    if (known == policy) return name;
  }
  HPO_CHECK(false && "a memory policy has no name");
}

absl::StatusOr<MemoryPolicy> MemoryPolicyFromWire(absl::string_view name) {
  for (const auto& [policy, known] : kPolicies) {
    if (known == name) return policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected a memory policy: plan, strict or off, got '", name, "'"));
}

v1::Study ToProto(const StudyStatus& study) {
  v1::Study proto;
  proto.set_name(study.spec.name);
  proto.set_state(study.finished ? v1::STUDY_STATE_FINISHED : v1::STUDY_STATE_ACTIVE);
  for (const Objective& objective : study.spec.objectives) {
    *proto.add_objectives() = ToProto(objective);
  }
  *proto.mutable_budget() = ToProto(study.spec.budget);
  *proto.mutable_space() = ToProto(study.spec.space);
  *proto.mutable_counts() = ToProto(study.counts);
  if (study.best_trial) proto.set_best_trial(study.best_trial->value);
  if (study.best_value) proto.set_best_value(*study.best_value);
  *proto.mutable_wall_clock_used() = ToProto(study.wall_clock_used);
  for (const WorkerStatus& worker : study.workers) *proto.add_workers() = ToProto(worker);
  proto.set_waiting_for(study.waiting_for);
  proto.set_task(study.spec.trainer.task);
  proto.set_train(study.spec.trainer.train);
  proto.set_validation(study.spec.trainer.validation);
  proto.mutable_command()->Assign(study.spec.trainer.command.begin(),
                                  study.spec.trainer.command.end());
  proto.set_workdir(study.spec.trainer.workdir);
  proto.set_sampler(study.spec.sampler.type);
  proto.set_pruner(study.spec.pruner.type);
  proto.set_seed(study.spec.sampler.seed);
  proto.set_memory_policy(std::string(WireName(study.spec.memory.policy)));
  proto.set_sequence(study.sequence);
  proto.set_unreadable(study.unreadable);
  for (const PriorStatus& prior : study.priors) *proto.add_warm_start() = ToProto(prior);
  proto.set_last_proposal(study.last_proposal);
  for (const MetricConstraint& constraint : study.spec.constraints) {
    *proto.add_constraints() = ToProto(constraint);
  }
  proto.set_best_violation(study.best_violation);
  proto.set_order(ToProto(study.order));
  proto.set_failure(study.failure);
  *proto.mutable_attributes() = ToProto(study.attributes);
  if (study.created != absl::InfinitePast()) *proto.mutable_created() = ToProto(study.created);
  return proto;
}

absl::StatusOr<StudyStatus> FromProto(const v1::Study& proto) {
  StudyStatus study{.finished = proto.state() == v1::STUDY_STATE_FINISHED,
                    .failure = proto.failure(),
                    .counts = FromProto(proto.counts()),
                    .wall_clock_used = FromProto(proto.wall_clock_used()),
                    .waiting_for = proto.waiting_for(),
                    .sequence = proto.sequence()};
  // A server that knows no orders sends none.
  if (proto.order() != v1::STUDY_ORDER_UNSPECIFIED) {
    HPO_ASSIGN_OR_RETURN(study.order, FromProto(proto.order()));
  }
  study.spec.name = proto.name();
  for (const v1::Objective& objective : proto.objectives()) {
    HPO_ASSIGN_OR_RETURN(study.spec.objectives.emplace_back(), FromProto(objective));
  }
  study.spec.budget = FromProto(proto.budget());
  HPO_ASSIGN_OR_RETURN(study.spec.space, FromProto(proto.space()));
  study.spec.trainer.task = proto.task();
  study.spec.trainer.train = proto.train();
  study.spec.trainer.validation = proto.validation();
  study.spec.trainer.command.assign(proto.command().begin(), proto.command().end());
  study.spec.trainer.workdir = proto.workdir();
  study.spec.sampler.type = proto.sampler();
  study.spec.sampler.seed = proto.seed();
  study.spec.pruner.type = proto.pruner();
  HPO_ASSIGN_OR_RETURN(study.spec.memory.policy, MemoryPolicyFromWire(proto.memory_policy()));
  if (proto.has_best_trial()) study.best_trial = TrialNumber{proto.best_trial()};
  if (proto.has_best_value()) study.best_value = proto.best_value();
  for (const v1::Worker& worker : proto.workers()) study.workers.push_back(FromProto(worker));
  for (const v1::PriorStudy& prior : proto.warm_start()) study.priors.push_back(FromProto(prior));
  study.last_proposal = proto.last_proposal();
  study.unreadable = proto.unreadable();
  for (const v1::MetricConstraint& constraint : proto.constraints()) {
    study.spec.constraints.push_back(FromProto(constraint));
  }
  study.best_violation = proto.best_violation();
  study.attributes = FromProto(proto.attributes());
  if (proto.has_created()) study.created = FromProto(proto.created());
  return study;
}

v1::MemoryEstimate ToProto(const MemoryEstimate& estimate) {
  v1::MemoryEstimate proto;
  proto.set_weights_bytes(estimate.weights.count);
  proto.set_gradients_bytes(estimate.gradients.count);
  proto.set_optimizer_bytes(estimate.optimizer.count);
  proto.set_activations_bytes(estimate.activations.count);
  proto.set_head_bytes(estimate.head.count);
  proto.set_workspaces_bytes(estimate.workspaces.count);
  proto.set_base_bytes(estimate.base.count);
  proto.set_live_peak_bytes(estimate.live_peak.count);
  proto.set_expected_live_peak_bytes(estimate.expected_live_peak.count);
  proto.set_expected_reserved_peak_bytes(estimate.expected_reserved_peak.count);
  proto.set_reserved_peak_bytes(estimate.reserved_peak.count);
  proto.set_needed_limit_bytes(estimate.needed_limit.count);
  proto.set_peak_phase(estimate.peak_phase);
  return proto;
}

MemoryEstimate FromProto(const v1::MemoryEstimate& proto) {
  return MemoryEstimate{.weights = Bytes{proto.weights_bytes()},
                        .gradients = Bytes{proto.gradients_bytes()},
                        .optimizer = Bytes{proto.optimizer_bytes()},
                        .activations = Bytes{proto.activations_bytes()},
                        .head = Bytes{proto.head_bytes()},
                        .workspaces = Bytes{proto.workspaces_bytes()},
                        .base = Bytes{proto.base_bytes()},
                        .live_peak = Bytes{proto.live_peak_bytes()},
                        .expected_live_peak = Bytes{proto.expected_live_peak_bytes()},
                        .expected_reserved_peak = Bytes{proto.expected_reserved_peak_bytes()},
                        .reserved_peak = Bytes{proto.reserved_peak_bytes()},
                        .needed_limit = Bytes{proto.needed_limit_bytes()},
                        .peak_phase = proto.peak_phase()};
}

}  // namespace hpo
