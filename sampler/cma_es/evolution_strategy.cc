#include "sampler/cma_es/evolution_strategy.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/base/status.h"
#include "sampler/numeric/portable_math.h"
#include "sampler/numeric/truncated_normal.h"

namespace hpo::sampler {
namespace {

// The first run begins around this part of the places it is given, and at least this wide.
constexpr double kBestPart = 0.1;
constexpr double kLeastSpread = 0.1;
// Of a later run's first distribution: it reaches over most of the cube.
constexpr double kRestartSpread = 0.3;
// A run ends where it is narrower, or its covariance so degenerate.
constexpr double kConverged = 1e-11;
constexpr double kDegenerate = 1e14;
// How often a place outside the cube is drawn again before it is moved to the border.
constexpr int kRedraws = 32;

double Norm(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// Of a standard normal vector.
double ExpectedNorm(double n) {
  return std::sqrt(n) * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n));
}

double DrawNormal(Rng& rng) {
  // The middle of one of 2^53 equal parts, so never 0 or 1.
  const double part = rng.Uniform() + 0x1.0p-54;
  return part <= 0.5 ? LowerNormalQuantile(part) : -LowerNormalQuantile(1.0 - part);
}

size_t DefaultPopulation(size_t num_axes) {
  return 4 + static_cast<size_t>(3.0 * Log(static_cast<double>(num_axes)));
}

bool InCube(const std::vector<double>& position) {
  return std::all_of(position.begin(), position.end(),
                     [](double x) { return x >= 0.0 && x <= 1.0; });
}

}  // namespace

SelectionRates SelectionRates::Of(size_t num_axes, size_t population) {
  SelectionRates rates;
  for (size_t i = 0; i < population / 2; ++i) {
    rates.weights.push_back(Log(0.5 * static_cast<double>(population + 1)) -
                            Log(static_cast<double>(i + 1)));
  }
  const double total = std::accumulate(rates.weights.begin(), rates.weights.end(), 0.0);
  double squares = 0.0;
  for (double& weight : rates.weights) {
    weight /= total;
    squares += weight * weight;
  }
  const double n = static_cast<double>(num_axes);
  const double mass = 1.0 / squares;
  rates.mass = mass;
  rates.step = (mass + 2.0) / (n + mass + 5.0);
  rates.step_damping =
      1.0 + 2.0 * std::max(0.0, std::sqrt((mass - 1.0) / (n + 1.0)) - 1.0) + rates.step;
  rates.path = (4.0 + mass / n) / (n + 4.0 + 2.0 * mass / n);
  rates.rank_one = 2.0 / ((n + 1.3) * (n + 1.3) + mass);
  rates.rank_mu = std::min(1.0 - rates.rank_one,
                           2.0 * (mass - 2.0 + 1.0 / mass) / ((n + 2.0) * (n + 2.0) + mass));
  return rates;
}

EvolutionStrategy::EvolutionStrategy(size_t num_axes, uint64_t seed,
                                     std::vector<EvaluatedPlace> start)
    : num_axes_(num_axes), seed_(seed) {
  HPO_CHECK(num_axes > 0 && !start.empty());
  SetPopulation(DefaultPopulation(num_axes));
  BeginAround(std::move(start));
}

void EvolutionStrategy::SetPopulation(size_t population) {
  population_ = population;
  rates_ = SelectionRates::Of(num_axes_, population);
}

void EvolutionStrategy::Begin(std::vector<double> mean, double step_size) {
  mean_ = std::move(mean);
  step_size_ = step_size;
  covariance_.assign(num_axes_ * num_axes_, 0.0);
  for (size_t i = 0; i < num_axes_; ++i) Covariance(i, i) = 1.0;
  Factorize();
  step_path_.assign(num_axes_, 0.0);
  covariance_path_.assign(num_axes_, 0.0);
  generation_ = 0;
  best_ = Merit{};
  last_gain_ = 0;
  flat_ = false;
  ++runs_;
}

void EvolutionStrategy::BeginAround(std::vector<EvaluatedPlace> start) {
  std::stable_sort(start.begin(), start.end(),
                   [](const auto& a, const auto& b) { return a.merit < b.merit; });
  const auto count = static_cast<size_t>(std::ceil(kBestPart * static_cast<double>(start.size())));
  start.resize(count);
  const double share = 1.0 / static_cast<double>(count);
  std::vector<double> mean(num_axes_, 0.0);
  for (const EvaluatedPlace& place : start) {
    for (size_t i = 0; i < num_axes_; ++i) mean[i] += share * place.position[i];
  }
  Begin(std::move(mean), 1.0);
  for (size_t i = 0; i < num_axes_; ++i) {
    for (size_t j = 0; j < num_axes_; ++j) {
      double sum = i == j ? kLeastSpread * kLeastSpread : 0.0;
      for (const EvaluatedPlace& place : start) {
        sum += share * (place.position[i] - mean_[i]) * (place.position[j] - mean_[j]);
      }
      Covariance(i, j) = sum;
    }
  }
  Factorize();
  // The step size takes the distribution's volume.
  step_size_ = Exp(factor_.LogDeterminant() / (2.0 * static_cast<double>(num_axes_)));
  for (double& entry : covariance_) entry /= step_size_ * step_size_;
  Factorize();
}

void EvolutionStrategy::Factorize() {
  factor_ = CholeskyFactor();
  for (size_t i = 0; i < num_axes_; ++i) {
    factor_.Append(std::span(&Covariance(i, 0), i), Covariance(i, i));
  }
}

void EvolutionStrategy::Tell(EvaluatedPlace place) {
  generation_places_.push_back(std::move(place));
  if (generation_places_.size() < population_) return;
  std::stable_sort(generation_places_.begin(), generation_places_.end(),
                   [](const auto& a, const auto& b) { return a.merit < b.merit; });
  if (generation_places_.front().merit.worth != Merit::Class::kUseless) Move();
  generation_places_.clear();
}

std::vector<double> EvolutionStrategy::ShortenedStep(std::span<const double> position) const {
  std::vector<double> step;
  for (size_t i = 0; i < num_axes_; ++i) step.push_back((position[i] - mean_[i]) / step_size_);
  std::vector<double> whitened = step;
  factor_.SolveLower(whitened);
  const double n = static_cast<double>(num_axes_);
  const double longest = std::sqrt(n) + 2.0 * n / (n + 2.0);
  const double length = Norm(whitened);
  if (length > longest) {
    for (double& part : step) part *= longest / length;
  }
  return step;
}

void EvolutionStrategy::Move() {
  std::vector<std::vector<double>> steps;
  std::vector<double> mean_step(num_axes_, 0.0);
  for (size_t k = 0; k < rates_.weights.size(); ++k) {
    steps.push_back(ShortenedStep(generation_places_[k].position));
    for (size_t i = 0; i < num_axes_; ++i) mean_step[i] += rates_.weights[k] * steps[k][i];
  }
  for (size_t i = 0; i < num_axes_; ++i) {
    mean_[i] = std::clamp(mean_[i] + step_size_ * mean_step[i], 0.0, 1.0);
  }
  ++generation_;
  const bool path_follows = MovePaths(mean_step);
  MoveCovariance(steps, path_follows);
  const Merit best = generation_places_.front().merit;
  flat_ = best == generation_places_[rates_.weights.size()].merit;
  if (best < best_) {
    best_ = best;
    last_gain_ = generation_;
  }
  if (!HasEnded()) return;
  Rng rng(seed_, runs_);
  std::vector<double> mean;
  for (size_t i = 0; i < num_axes_; ++i) mean.push_back(rng.Uniform());
  SetPopulation(2 * population_);
  Begin(std::move(mean), kRestartSpread);
}

bool EvolutionStrategy::MovePaths(std::span<const double> step) {
  std::vector<double> whitened(step.begin(), step.end());
  factor_.SolveLower(whitened);
  const double n = static_cast<double>(num_axes_);
  const double step_gain = std::sqrt(rates_.step * (2.0 - rates_.step) * rates_.mass);
  for (size_t i = 0; i < num_axes_; ++i) {
    step_path_[i] = (1.0 - rates_.step) * step_path_[i] + step_gain * whitened[i];
  }
  const double length = Norm(step_path_) / ExpectedNorm(n);
  // A long path of steps holds the covariance's path back, until the step size has followed.
  const double decay = Exp(2.0 * static_cast<double>(generation_) * Log(1.0 - rates_.step));
  const bool follows = length / std::sqrt(1.0 - decay) < 1.4 + 2.0 / (n + 1.0);
  const double path_gain =
      follows ? std::sqrt(rates_.path * (2.0 - rates_.path) * rates_.mass) : 0.0;
  for (size_t i = 0; i < num_axes_; ++i) {
    covariance_path_[i] = (1.0 - rates_.path) * covariance_path_[i] + path_gain * step[i];
  }
  step_size_ *= Exp(std::min(1.0, rates_.step / rates_.step_damping * (length - 1.0)));
  return follows;
}

void EvolutionStrategy::MoveCovariance(const std::vector<std::vector<double>>& steps,
                                       bool path_follows) {
  const double lacking = path_follows ? 0.0 : rates_.rank_one * rates_.path * (2.0 - rates_.path);
  const double kept = 1.0 - rates_.rank_one - rates_.rank_mu + lacking;
  for (size_t i = 0; i < num_axes_; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = 0.0;
      for (size_t k = 0; k < steps.size(); ++k)
        sum += rates_.weights[k] * steps[k][i] * steps[k][j];
      const double entry = kept * Covariance(i, j) +
                           rates_.rank_one * covariance_path_[i] * covariance_path_[j] +
                           rates_.rank_mu * sum;
      Covariance(i, j) = entry;
      Covariance(j, i) = entry;
    }
  }
  Factorize();
}

double EvolutionStrategy::Spread() const {
  double largest = 0.0;
  for (size_t i = 0; i < num_axes_; ++i) {
    largest = std::max(largest, covariance_[i * num_axes_ + i]);
  }
  return step_size_ * std::sqrt(largest);
}

bool EvolutionStrategy::HasEnded() const {
  double least = covariance_[0];
  double largest = covariance_[0];
  for (size_t i = 0; i < num_axes_; ++i) {
    least = std::min(least, covariance_[i * num_axes_ + i]);
    largest = std::max(largest, covariance_[i * num_axes_ + i]);
  }
  const size_t patience = 10 + 30 * num_axes_ / population_;
  return Spread() < kConverged || !(largest < kDegenerate * least) || flat_ ||
         generation_ - last_gain_ > patience;
}

std::vector<double> EvolutionStrategy::Draw(Rng& rng) const {
  std::vector<double> position(num_axes_);
  for (int attempt = 0; attempt < kRedraws; ++attempt) {
    std::vector<double> normal(num_axes_);
    for (double& part : normal) part = DrawNormal(rng);
    const std::vector<double> step = factor_.Times(normal);
    for (size_t i = 0; i < num_axes_; ++i) position[i] = mean_[i] + step_size_ * step[i];
    if (InCube(position)) return position;
  }
  for (double& x : position) x = std::clamp(x, 0.0, 1.0);
  return position;
}

}  // namespace hpo::sampler
