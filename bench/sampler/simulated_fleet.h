// Cards that ask a study's sampler whenever they are free, on a simulated clock.
//
// Samplers are asked as the server asks them. Where memory is learned, the context is the server's
// own (server/placement/placement.h): a trainer that does not plan, LearnedNeed over the
// trials that ended, the parameters that the study declares. The study's pruner is asked after each
// report but the last, which comes with the result. One owner thread; deterministic.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "bench/sampler/problem.h"
#include "sampler/api/pruner.h"
#include "sampler/api/sampler.h"

namespace hpo {

struct Card {
  Bytes capacity;
  double speed = 1.0;  // a run takes its seconds divided by this
};

// A trial as it was when it reported or ended.
struct FleetTrial {
  sampler::HistoryTrial trial;
  size_t card = 0;
  double at_s = 0.0;
};

class SimulatedFleet {
 public:
  // `problem` must outlive this object. Learned memory needs cards of one capacity: what a small
  // one cannot run, the server would give to a larger one again.
  SimulatedFleet(const SamplerProblem& problem, StudySpec study, std::vector<Card> cards,
                 std::vector<sampler::PriorStudy> priors = {});

  // Every free card asks, in order, then the clock moves to what is next of any trial, a report or
  // its end: that trial. Aborts where no card gets a trial any more.
  FleetTrial Advance();

  // Advances to the next end of a trial.
  FleetTrial RunNext();

  const sampler::History& history() const { return history_; }

  // Seconds of cards that asked and got nothing, so far.
  double idle_s() const { return idle_s_; }

 private:
  struct Running {
    FleetTrial next;  // as it is, at the time of what is next
    sampler::SimulatedResult result;
    double seconds = 1.0;  // to its end, or to each of its reports
  };

  sampler::AskContext ContextFor(const Card& card, TrialNumber number) const;
  // Whether it got a trial.
  bool Ask(size_t card);
  // Reports or ends it.
  void Step(Running& running);
  void Observe(const sampler::HistoryTrial& trial);

  const SamplerProblem& problem_;
  const StudySpec study_;
  const std::vector<Card> cards_;
  std::unique_ptr<sampler::Sampler> sampler_;
  std::unique_ptr<sampler::Pruner> pruner_;
  Rng noise_;
  sampler::History history_;
  std::vector<std::optional<Running>> running_;  // by card
  int64_t next_number_ = 0;
  double now_s_ = 0.0;
  double idle_s_ = 0.0;
};

}  // namespace hpo
