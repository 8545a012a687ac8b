// Cards that ask a study's sampler whenever they are free, on a simulated clock.
//
// Samplers are asked as the server asks them. Where memory is learned, the context is the server's
// own (server/scheduler/placement.h): a trainer that does not plan, LearnedNeed over the trials
// that ended, the parameters that the study declares.
// One owner thread; deterministic.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "bench/sampler/problem.h"
#include "sampler/sampler.h"

namespace hpo {

struct Card {
  Bytes capacity;
  double speed = 1.0;  // a run takes its seconds divided by this
};

struct FleetTrial {
  HistoryTrial trial;
  size_t card = 0;
  double ended_s = 0.0;
};

class SimulatedFleet {
 public:
  // `problem` must outlive this object. Learned memory needs cards of one capacity: what a small
  // one cannot run, the server would give to a larger one again.
  SimulatedFleet(const SamplerProblem& problem, StudySpec study, std::vector<Card> cards,
                 std::vector<PriorStudy> priors = {});

  // Every free card asks, in order, then the clock moves to the next end of a trial: that trial.
  // Aborts where no card gets a trial any more.
  FleetTrial RunNext();

  const History& history() const { return history_; }

  // Seconds of cards that asked and got nothing, so far.
  double idle_s() const { return idle_s_; }

 private:
  AskContext ContextFor(const Card& card, TrialNumber number) const;
  // Whether it got a trial.
  bool Ask(size_t card);
  void Observe(const HistoryTrial& trial);

  const SamplerProblem& problem_;
  const StudySpec study_;
  const std::vector<Card> cards_;
  std::unique_ptr<Sampler> sampler_;
  Rng noise_;
  History history_;
  std::vector<std::optional<FleetTrial>> running_;  // by card; with its end
  int64_t next_number_ = 0;
  double now_s_ = 0.0;
  double idle_s_ = 0.0;
};

}  // namespace hpo
