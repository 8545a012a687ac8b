#include "server/placement/smaller_cards.h"

#include <algorithm>
#include <utility>

#include "memory/plan/fit_decision.h"
#include "server/placement/capability.h"

namespace hpo::server {
namespace {

// `worker` without what says which one it is: equal for workers that can run the same trials.
WorkerFacts KindOf(WorkerFacts worker, Bytes usable) {
  worker.worker.clear();
  worker.instance_key.clear();
  worker.device.uuid.clear();
  worker.capacity = usable;
  return worker;
}

}  // namespace

SmallerCards::SmallerCards(const StudySpec& study, Bytes usable,
                           const std::vector<WorkerFacts>& workers,
                           absl::FunctionRef<MemoryKnowledge(const WorkerFacts&)> knowledge)
    : study_(study) {
  std::vector<WorkerFacts> kinds;
  for (const WorkerFacts& worker : workers) {
    const Bytes own =
        memory::UsableBytes(memory::QuantizeCapacity(worker.capacity), worker.device, study.memory);
    if (own >= usable) continue;
    WorkerFacts kind = KindOf(worker, own);
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    kinds.push_back(std::move(kind));
    sampler::AskContext context = AskFor(study, worker, TrialNumber{}, knowledge(worker));
    cards_.push_back(
        {.facts = worker, .usable = own, .feasibility = std::move(context.feasibility)});
  }
  std::stable_sort(cards_.begin(), cards_.end(),
                   [](const Card& a, const Card& b) { return a.usable < b.usable; });
}

bool SmallerCards::CanRun(const Card& card, const Trial& trial) const {
  if (trial.min_capacity.count > 0 && card.usable <= trial.min_capacity) return false;
  if (!CheckCanRun(study_, card.facts, trial.params).ok()) return false;
  if (!trial.admission || !card.feasibility) return true;
  return card.feasibility({&trial.params, 1}).front().fits;
}

std::optional<Bytes> SmallerCards::LeastUsableFor(const Trial& trial) const {
  const auto able = std::find_if(cards_.begin(), cards_.end(),
                                 [&](const Card& card) { return CanRun(card, trial); });
  return able == cards_.end() ? std::nullopt : std::optional(able->usable);
}

}  // namespace hpo::server
