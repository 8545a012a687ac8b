// Tested by tests/server/api/study_api_test.cc.
#include "server/api/memory_answer.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "memory/plan/fit_decision.h"

namespace hpo::server {
namespace {

// Where there is no estimate: what a placement goes by.
absl::StatusOr<memory::MemoryAnswer> LearnedAnswer(const StudySpec& spec, const WorkerFacts& facts,
                                                   const memory::FitDecider& decider,
                                                   const ParamMap& params, Bytes capacity) {
  const std::optional<memory::LearnedFit> learned = decider.Learned(params, capacity);
  if (!learned.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "memory: expected a configuration with an estimate, got one that is not known on worker ",
        facts.worker, " (it lacks the model, or memory.policy is off)"));
  }
  const Bytes usable = memory::UsableBytes(capacity, facts.device, spec.memory);
  memory::MemoryAnswer answer{.usable = usable};
  if (const auto config = memory::TrainingConfigOf(params, spec.trainer); config.ok()) {
    answer.plan = memory::LiteralPlan(*config);
  }
  answer.fits = learned->fits;
  answer.estimate.needed_limit = learned->needed;
  const std::string allowed = absl::StrCat(", allowed ", FormatBytes(usable));
  if (!learned->sure) {
    answer.explanation = absl::StrCat("would be dry-run first", allowed);
  } else if (learned->needed == Bytes{}) {
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

absl::StatusOr<WorkerFacts> ChooseWorker(const WorkerRegistry& registry, const std::string& name) {
  const std::vector<RegisteredWorker> workers = registry.List();
  const RegisteredWorker* chosen = nullptr;
  std::vector<std::string> names;
  for (const RegisteredWorker& worker : workers) {
    names.push_back(worker.facts.worker);
    if (!name.empty() && worker.facts.worker == name) return worker.facts;
    if (chosen == nullptr || worker.facts.capacity > chosen->facts.capacity) chosen = &worker;
  }
  if (chosen == nullptr) {
    return absl::FailedPreconditionError(
        "memory: expected a registered worker, got none; run: hpo-worker --gpu 0");
  }
  if (name.empty()) return chosen->facts;
  return absl::FailedPreconditionError(
      absl::StrCat("worker '", name, "': expected one of ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<memory::MemoryAnswer> AnswerMemory(const StudySpec& spec, const WorkerFacts& facts,
                                                  const MemoryKnowledge& knowledge,
                                                  const ParamMap& params, Bytes capacity) {
  const memory::FitDecider decider(spec, facts, knowledge.evidence, knowledge.replays);
  HPO_ASSIGN_OR_RETURN(const std::optional<memory::PlannedMemory> planned,
                       decider.Plan(params, capacity));
  if (!planned) return LearnedAnswer(spec, facts, decider, params, capacity);
  memory::MemoryAnswer answer{.estimate = planned->estimate,
                              .plan = planned->plan,
                              .fits = planned->fits,
                              .usable = memory::UsableBytes(capacity, facts.device, spec.memory)};
  answer.explanation =
      planned->fits ? absl::StrCat("fits: needs ", FormatBytes(planned->estimate.needed_limit),
                                   " at micro-batch ", planned->plan.micro_batch, ", allowed ",
                                   FormatBytes(answer.usable))
                    : memory::ExplainMisfit(*planned, answer.usable);
  return answer;
}

}  // namespace hpo::server
