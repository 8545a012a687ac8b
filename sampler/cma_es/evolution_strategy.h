// CMA-ES in the unit cube: a normal distribution whose mean, step size and covariance follow the
// better of what was evaluated, a generation at a time.
//
// It learns from every place, whoever proposed it: steps longer than its own distribution would
// have made are shortened (injection), and only the better half of a generation counts, with
// positive weights. Where a run has ended (converged, degenerate, or without a gain for long) the
// next begins at a random mean with twice the population.
//
// The covariance is kept with its Cholesky factor instead of its root. Every sum has one order, so
// the same places in the same order give the same bits on every machine. A value: copies are
// independent; const members are safe from several threads.
// Sources: Hansen 2016, "The CMA Evolution Strategy: A Tutorial" (weights, paths, constants);
// Hansen 2011, "Injecting External Solutions Into CMA-ES"; Krause, Arbones and Igel 2016 (Cholesky
// factor); Auger and Hansen 2005 (restarts with growing population); Nomura et al. 2021, "Warm
// Starting CMA-ES" (the first distribution).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/random.h"
#include "sampler/numeric/cholesky_factor.h"

namespace hpo::sampler {

// How good a place is: less is better.
struct Merit {
  enum class Class { kCompleted, kStopped, kInfeasible, kUseless };
  Class worth = Class::kUseless;
  double loss = 0.0;
  auto operator<=>(const Merit&) const = default;
};

struct EvaluatedPlace {
  std::vector<double> position;  // in [0, 1], one per axis
  Merit merit;
};

// How a generation moves the distribution: "Tutorial", table 1.
struct SelectionRates {
  std::vector<double> weights;  // of the better half, summing up to 1
  double mass = 0.0;            // the weights' effective number
  double step = 0.0;            // c_sigma
  double step_damping = 0.0;    // d_sigma
  double path = 0.0;            // c_c
  double rank_one = 0.0;        // c_1
  double rank_mu = 0.0;         // c_mu

  static SelectionRates Of(size_t num_axes, size_t population);
};

class EvolutionStrategy {
 public:
  // Begins where the best tenth of `start` (at least one place; none useless) lies. `seed` keys the
  // means of later runs. num_axes >= 1.
  EvolutionStrategy(size_t num_axes, uint64_t seed, std::vector<EvaluatedPlace> start);

  // The next place. Population() of them are a generation, after which the distribution moves; one
  // of useless places alone is forgotten.
  void Tell(EvaluatedPlace place);

  // A place drawn from the distribution, inside the cube.
  std::vector<double> Draw(Rng& rng) const;

  size_t population() const { return population_; }
  size_t runs() const { return runs_; }
  const std::vector<double>& mean() const { return mean_; }
  // The largest standard deviation of an axis.
  double Spread() const;

 private:
  void Begin(std::vector<double> mean, double step_size);
  void SetPopulation(size_t population);
  void BeginAround(std::vector<EvaluatedPlace> start);
  void Move();
  std::vector<double> ShortenedStep(std::span<const double> position) const;
  // Whether the covariance's path took the step.
  bool MovePaths(std::span<const double> step);
  void MoveCovariance(const std::vector<std::vector<double>>& steps, bool path_follows);
  void Factorize();
  bool HasEnded() const;

  double& Covariance(size_t i, size_t j) { return covariance_[i * num_axes_ + j]; }

  size_t num_axes_;
  uint64_t seed_;
  size_t runs_ = 0;

  size_t population_ = 0;
  SelectionRates rates_;  // of the population

  // Of the run.
  std::vector<double> mean_;
  double step_size_ = 0.0;
  std::vector<double> covariance_;  // row by row
  CholeskyFactor factor_;           // of the covariance
  std::vector<double> step_path_;
  std::vector<double> covariance_path_;
  size_t generation_ = 0;
  Merit best_;
  size_t last_gain_ = 0;  // generation
  bool flat_ = false;     // the last generation had one merit throughout its better half

  std::vector<EvaluatedPlace> generation_places_;
};

}  // namespace hpo::sampler
