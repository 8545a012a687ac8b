// Tested by tests/server/api/study_api_test.cc.
#include "server/api/memory_answer.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "memory/plan/fit_decision.h"

namespace hpo {
namespace {

// Where there is no estimate: what a placement goes by.
absl::StatusOr<MemoryAnswer> LearnedAnswer(const StudySpec& spec, const WorkerFacts& facts,
                                           const FitDecider& decider, const ParamMap& params,
                                           Bytes capacity) {
  const std::optional<LearnedFit> learned = decider.Learned(params, capacity);
  if (!learned.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "memory: expected a configuration with an estimate, got one that is not known on worker ",
        facts.worker, " (it lacks the model, or memory.policy is off)"));
  }
  const Bytes usable = UsableBytes(capacity, facts.device, spec.memory);
  MemoryAnswer answer{.usable = usable};
  if (const auto config = TrainingConfigOf(params, spec.trainer); config.ok()) {
    answer.plan = LiteralPlan(*config);
  }
  answer.fits = learned->fits;
  answer.estimate.needed_limit = learned->needed;
  const std::string allowed = absl::StrCat(", allowed ", FormatBytes(usable));
  if (learned->needed == Bytes{}) {
    answer.explanation = absl::StrCat(
        learned->fits ? "would be tried: too few trials have run to learn what it needs"
                      : "does not fit: a trial no larger met an out-of-memory error",
        allowed);
  } else {
    answer.explanation = absl::StrCat(
        learned->fits ? "fits" : "does not fit", ": needs ", FormatBytes(learned->needed), " (",
        FormatBytes(learned->expected), " without its margin) by what other trials used", allowed);
  }
  return answer;
}

}  // namespace

absl::StatusOr<MemoryAnswer> AnswerMemory(const StudySpec& spec, const WorkerFacts& facts,
                                          const MemoryKnowledge& knowledge, const ParamMap& params,
                                          Bytes capacity) {
  const FitDecider decider(spec, facts, knowledge.evidence, knowledge.replays);
  HPO_ASSIGN_OR_RETURN(const std::optional<PlannedMemory> planned, decider.Plan(params, capacity));
  if (!planned) return LearnedAnswer(spec, facts, decider, params, capacity);
  MemoryAnswer answer{.estimate = planned->estimate,
                      .plan = planned->plan,
                      .fits = planned->fits,
                      .usable = UsableBytes(capacity, facts.device, spec.memory)};
  answer.explanation =
      planned->fits ? absl::StrCat("fits: needs ", FormatBytes(planned->estimate.needed_limit),
                                   " at micro-batch ", planned->plan.micro_batch, ", allowed ",
                                   FormatBytes(answer.usable))
                    : ExplainMisfit(*planned, answer.usable);
  return answer;
}

}  // namespace hpo
