#include "bench/sampler/simulated_fleet.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/status.h"
#include "sampler/factory/make_pruner.h"
#include "sampler/factory/make_sampler.h"
#include "server/placement/placement.h"

namespace hpo {
namespace {

constexpr uint64_t kNoiseStream = 1;

memory::BatchFeasibility KnownNeed(const SamplerProblem& problem, Bytes capacity) {
  return [&problem, capacity](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    fits.reserve(candidates.size());
    for (const ParamMap& params : candidates) {
      const Bytes needed = problem.need(params);
      fits.push_back({.fits = needed <= capacity, .needed = needed});
    }
    return fits;
  };
}

// The server decides in steps of 64 MiB. A card that offers the next step, with the rest kept free,
// has exactly its capacity for trials.
sampler::AskContext AskAsServer(StudySpec study, const Card& card, TrialNumber number,
                                const sampler::History& history) {
  WorkerFacts worker;
  worker.plans = false;
  worker.device.kind = "cuda";
  worker.capacity = RoundUp(card.capacity, MiB(64));
  study.memory.headroom = worker.capacity - card.capacity;
  return server::AskFor(study, worker, number,
                        server::KnowledgeFor(study, worker, {.history = history}, {}));
}

}  // namespace

SimulatedFleet::SimulatedFleet(const SamplerProblem& problem, StudySpec study,
                               std::vector<Card> cards, std::vector<sampler::PriorStudy> priors)
    : problem_(problem),
      study_(std::move(study)),
      cards_(std::move(cards)),
      sampler_(sampler::MakeSampler(study_, std::move(priors))),
      pruner_(sampler::MakePruner(study_)),
      noise_(study_.sampler.seed, kNoiseStream),
      running_(cards_.size()) {
  HPO_CHECK(problem_.memory != SamplerProblem::Memory::kLearned ||
            std::all_of(cards_.begin(), cards_.end(), [this](const Card& card) {
              return card.capacity == cards_.front().capacity;
            }));
}

sampler::AskContext SimulatedFleet::ContextFor(const Card& card, TrialNumber number) const {
  if (problem_.memory == SamplerProblem::Memory::kLearned) {
    return AskAsServer(study_, card, number, history_);
  }
  sampler::AskContext context{.number = number,
                              .space = study_.space,
                              .capacity = card.capacity,
                              .budget_trials = study_.budget.trials,
                              .repetition = sampler::Repetition::kWhereAllTried};
  if (problem_.memory == SamplerProblem::Memory::kKnown) {
    context.feasibility = KnownNeed(problem_, card.capacity);
  }
  return context;
}

bool SimulatedFleet::Ask(size_t card) {
  const Bytes capacity = cards_[card].capacity;
  const TrialNumber number{next_number_};
  const auto suggestion = sampler_->Suggest(ContextFor(cards_[card], number));
  if (!suggestion.ok()) return false;
  ++next_number_;
  Running started{.next = {.trial = {.number = number, .params = suggestion->params}, .card = card},
                  .result = sampler::SimulatedResult(std::nullopt)};
  Observe(started.next.trial);
  const Bytes need = problem_.need ? problem_.need(suggestion->params) : Bytes{};
  if (need <= capacity) {
    started.result = problem_.run(suggestion->params, noise_);
    if (problem_.need) started.result.used = need;
  }
  const double seconds = problem_.seconds ? problem_.seconds(suggestion->params) : 1.0;
  started.seconds = seconds / cards_[card].speed;
  started.next.at_s = now_s_ + started.seconds;
  running_[card] = std::move(started);
  return true;
}

void SimulatedFleet::Observe(const sampler::HistoryTrial& trial) {
  const sampler::HistoryEvent event{.sequence = history_.sequence() + 1, .trial = trial};
  history_.Apply(event);
  sampler_->Observe(event);
}

void SimulatedFleet::Step(Running& running) {
  sampler::HistoryTrial& trial = running.next.trial;
  const std::map<int64_t, double>& reports = running.result.reports;
  const size_t num_reported = trial.intermediate.size();
  if (num_reported + 1 < reports.size()) {
    const auto& [step, loss] = *std::next(reports.begin(), static_cast<ptrdiff_t>(num_reported));
    trial.intermediate.Add(step, loss);
    Observe(trial);
    if (!pruner_->Decide(history_, trial.number).has_value()) return;
    running.result.loss.reset();
    running.result.stopped = true;
  }
  sampler::EndTrial(running.result, cards_[running.next.card].capacity, trial);
  Observe(trial);
}

FleetTrial SimulatedFleet::Advance() {
  size_t num_idle = 0;
  for (size_t card = 0; card < cards_.size(); ++card) {
    if (!running_[card].has_value() && !Ask(card)) ++num_idle;
  }
  std::optional<Running>* first = nullptr;
  for (std::optional<Running>& running : running_) {
    if (!running.has_value()) continue;
    if (first == nullptr || running->next.at_s < (*first)->next.at_s) first = &running;
  }
  HPO_CHECK(first != nullptr);
  Running& running = **first;
  idle_s_ += static_cast<double>(num_idle) * (running.next.at_s - now_s_);
  now_s_ = running.next.at_s;
  Step(running);
  FleetTrial seen = running.next;
  running.next.at_s += running.seconds;
  if (seen.trial.state != TrialState::kRunning) first->reset();
  return seen;
}

FleetTrial SimulatedFleet::RunNext() {
  FleetTrial seen = Advance();
  while (seen.trial.state == TrialState::kRunning) seen = Advance();
  return seen;
}

}  // namespace hpo
