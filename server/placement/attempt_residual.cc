#include "server/placement/attempt_residual.h"

#include <utility>

#include "memory/plan/fit_decision.h"

namespace hpo::server {
namespace {

struct Evidence {
  MemoryPlan plan;
  bool censored = false;
  Bytes limit;
};

bool IsOfConfiguration(const OutOfMemory& oom) {
  return !oom.predicted && (oom.kind == OomKind::kConfiguration || oom.kind == OomKind::kLatePeak);
}

// `told` where it is a plan for the attempt's effective batch; a simple trainer tells none.
MemoryPlan PlanTold(const MemoryPlan& told, const AttemptRecord& attempt) {
  return told.effective_batch == attempt.attempt.plan.effective_batch ? told : attempt.attempt.plan;
}

std::optional<Evidence> EvidenceOf(const AttemptRecord& attempt, const FinishRequest& request) {
  if (const auto* oom = std::get_if<OutOfMemory>(&request.outcome)) {
    if (!IsOfConfiguration(*oom)) return std::nullopt;
    return Evidence{.plan = PlanTold(oom->plan, attempt),
                    .censored = true,
                    .limit = oom->limit.count > 0 ? oom->limit : attempt.limit};
  }
  if (!std::holds_alternative<Completed>(request.outcome)) return std::nullopt;
  const Bytes limit = request.memory.limit.count > 0 ? request.memory.limit : attempt.limit;
  if (request.memory.num_ooms > 0) {
    return Evidence{.plan = attempt.attempt.plan, .censored = true, .limit = limit};
  }
  // The peak of an attempt that was replanned is the larger plan's.
  const bool planned_anew = request.memory.num_replans > 0;
  return Evidence{
      .plan = planned_anew ? attempt.attempt.plan : PlanTold(request.final_plan, attempt),
      .limit = limit};
}

}  // namespace

std::optional<ResidualRecord> ResidualOf(const StudySpec& study, const WorkerFacts& worker,
                                         const ParamMap& params, const AttemptRecord& attempt,
                                         const FinishRequest& request,
                                         std::shared_ptr<memory::ReplayTable> replays) {
  const std::optional<Evidence> evidence = EvidenceOf(attempt, request);
  if (!evidence) return std::nullopt;
  const auto planned =
      memory::FitDecider(study, worker, {}, std::move(replays)).Estimate(params, evidence->plan);
  if (!planned.ok() || !planned->has_value()) return std::nullopt;
  const memory::MemoryEstimate& predicted = (*planned)->estimate;
  const std::optional<double> score = evidence->censored
                                          ? memory::CensoredScore(predicted, evidence->limit)
                                          : memory::ExactScore(predicted, request.memory);
  if (!score) return std::nullopt;
  return ResidualRecord{
      .trial = attempt.trial,
      .attempt = attempt.attempt.number,
      .residual = {.residual_class = memory::ClassOf(predicted, worker.device.kind),
                   .score = *score,
                   .censored = evidence->censored},
      .plan = evidence->plan,
      .predicted = predicted,
      .used = request.memory,
      .limit = evidence->limit,
      .device = worker.device,
      .torch_build = worker.torch_build};
}

}  // namespace hpo::server
