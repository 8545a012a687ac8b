#include "common/interop/importance/ped_anova.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

#include "common/base/random.h"
#include "common/base/status.h"
#include "common/interop/importance/assessment.h"

namespace hpo {
namespace {

constexpr double kTargetShare = 0.1;
constexpr int64_t kMostCells = 50;
constexpr double kPriorWeight = 1.0;
constexpr double kFewestTrials = 2;  // that have a parameter
// Resamples of many trials take long, and differ less.
constexpr size_t kMostResamples = 200;
constexpr size_t kFewestResamples = 25;
constexpr size_t kMostDraws = 2'000'000;
constexpr uint64_t kResampleSeed = 0x504544414e4f56;  // "PEDANOV"
constexpr double kLeastMass = 1e-12;

// Cells of the grid on which a parameter's distribution is compared: choices, grid values, or parts
// of its range.
int64_t NumCells(const Domain& domain) {
  if (NumChoices(domain) > 0) return static_cast<int64_t>(NumChoices(domain));
  const auto* whole = std::get_if<IntDomain>(&domain);
  if (whole != nullptr && whole->log) {
    const auto size = static_cast<double>(whole->high - whole->low + 1);
    return std::min(static_cast<int64_t>(std::ceil(std::log(size) / std::log(2.0))) + 1,
                    kMostCells);
  }
  return std::min(NumValues(domain).value_or(kMostCells), kMostCells);
}

// The cell of a coordinate; one between two cells' middles belongs to the lower.
int64_t CellOf(const Domain& domain, double coordinate, int64_t num_cells) {
  if (NumChoices(domain) > 0) return static_cast<int64_t>(coordinate);
  const Range range = RangeOf(domain);
  const double width = (range.high - range.low) / static_cast<double>(num_cells - 1);
  const double cell = std::ceil((coordinate - range.low) / width - 0.5);
  return static_cast<int64_t>(std::clamp(cell, 0.0, static_cast<double>(num_cells - 1)));
}

// How many trials each cell has.
using Histogram = std::vector<double>;

double Sum(const Histogram& counts) { return std::accumulate(counts.begin(), counts.end(), 0.0); }

struct Kernel {
  double cell = 0.0;
  double weight = 0.0;
};

std::vector<Kernel> KernelsOf(const Histogram& counts) {
  std::vector<Kernel> kernels;
  for (size_t cell = 0; cell < counts.size(); ++cell) {
    if (counts[cell] > 0.0) kernels.push_back({static_cast<double>(cell), counts[cell]});
  }
  return kernels;
}

// The first kernel up to which `share` quarters of the whole weight lie.
double Quartile(const std::vector<Kernel>& kernels, double total, double quarters, bool inclusive) {
  const double target = std::floor(quarters * total / 4.0);
  double sum = 0.0;
  for (const Kernel& kernel : kernels) {
    sum += kernel.weight;
    if (inclusive ? sum >= target : sum > target) return kernel.cell;
  }
  return kernels.back().cell;
}

// Scott's rule, from the smaller of the standard deviation and the interquartile range; 90 % of a
// kernel at least spread over its cell.
double Bandwidth(const std::vector<Kernel>& kernels) {
  double total = 0.0;
  double sum = 0.0;
  for (const Kernel& kernel : kernels) {
    total += kernel.weight;
    sum += kernel.weight * kernel.cell;
  }
  double squares = 0.0;
  for (const Kernel& kernel : kernels) {
    squares += kernel.weight * (kernel.cell - sum / total) * (kernel.cell - sum / total);
  }
  const double deviation = std::sqrt(squares / std::max(1.0, total - 1.0));
  const double quartiles =
      Quartile(kernels, total, 3.0, false) - Quartile(kernels, total, 1.0, true);
  return std::max(1.059 * std::min(quartiles / 1.34, deviation) * std::pow(total, -0.2),
                  0.5 / 1.64);
}

double NormalMass(double low, double high) {
  // In the left tail, where the difference keeps its digits.
  if (low > 0.0) return NormalMass(-high, -low);
  return 0.5 * (std::erfc(-high * M_SQRT1_2) - std::erfc(-low * M_SQRT1_2));
}

void AddNormal(double middle, double sigma, double weight, std::vector<double>& masses) {
  const auto position = [&](double x) { return (x - middle) / sigma; };
  const auto num_cells = static_cast<double>(masses.size());
  const double whole = NormalMass(position(-0.5), position(num_cells - 0.5));
  for (size_t cell = 0; cell < masses.size(); ++cell) {
    const auto x = static_cast<double>(cell);
    masses[cell] += weight * NormalMass(position(x - 0.5), position(x + 0.5)) / whole;
  }
}

// Kernels of one width, each in the middle of a cell: what a kernel gives a cell depends on how far
// apart the two are, and is worked out once for each distance.
void AddNormals(const std::vector<Kernel>& kernels, double sigma, double total,
                std::vector<double>& masses) {
  const auto num_cells = static_cast<double>(masses.size());
  std::vector<double> by_distance;
  for (double distance = 1.0 - num_cells; distance < num_cells; distance += 1.0) {
    by_distance.push_back(NormalMass((distance - 0.5) / sigma, (distance + 0.5) / sigma));
  }
  for (const Kernel& kernel : kernels) {
    const double whole =
        NormalMass((-0.5 - kernel.cell) / sigma, (num_cells - 0.5 - kernel.cell) / sigma);
    const size_t first = masses.size() - 1 - static_cast<size_t>(kernel.cell);
    for (size_t cell = 0; cell < masses.size(); ++cell) {
      masses[cell] += kernel.weight / total * by_distance[first + cell] / whole;
    }
  }
}

// A choice's kernel gives it one more than each choice gets from the prior.
void AddChoice(double choice, double prior, double weight, std::vector<double>& masses) {
  const double total = 1.0 + prior * static_cast<double>(masses.size());
  for (double& mass : masses) mass += weight * prior / total;
  masses[static_cast<size_t>(choice)] += weight / total;
}

// The smoothed distribution over the cells, a prior of one trial's weight included.
std::vector<double> Masses(bool is_categorical, const Histogram& counts) {
  const std::vector<Kernel> kernels = KernelsOf(counts);
  const double total = Sum(counts) + kPriorWeight;
  std::vector<double> masses(counts.size(), 0.0);
  const auto width = static_cast<double>(counts.size());
  if (is_categorical) {
    const double prior = kPriorWeight / static_cast<double>(kernels.size() + 1);
    for (const Kernel& kernel : kernels) {
      AddChoice(kernel.cell, prior, kernel.weight / total, masses);
    }
    for (double& mass : masses) mass += kPriorWeight / total / width;
  } else {
    AddNormals(kernels, Bandwidth(kernels), total, masses);
    AddNormal((width - 1.0) / 2.0, width, kPriorWeight / total, masses);
  }
  for (double& mass : masses) mass += kLeastMass;
  return masses;
}

double PearsonDivergence(const std::vector<double>& target, const std::vector<double>& all) {
  double divergence = 0.0;
  for (size_t cell = 0; cell < all.size(); ++cell) {
    const double excess = target[cell] / all[cell] - 1.0;
    divergence += all[cell] * excess * excess;
  }
  return divergence;
}

// Where the trials lie on a parameter's grid.
struct GridParameter {
  std::string name;
  bool is_categorical = false;
  size_t num_cells = 0;
  std::vector<int32_t> cells;  // by trial
};

constexpr int32_t kNoCell = -1;

GridParameter OnGrid(const Parameter& parameter, const std::vector<AssessedTrial>& trials) {
  const int64_t num_cells = NumCells(parameter.domain);
  GridParameter grid{.name = parameter.name,
                     .is_categorical = NumChoices(parameter.domain) > 0,
                     .num_cells = num_cells < 2 ? 0 : static_cast<size_t>(num_cells)};
  for (const AssessedTrial& trial : trials) {
    const auto found = trial.params.find(parameter.name);
    const auto coordinate = found == trial.params.end() || num_cells < 2
                                ? std::nullopt
                                : Coordinate(parameter.domain, found->second);
    grid.cells.push_back(
        coordinate ? static_cast<int32_t>(CellOf(parameter.domain, *coordinate, num_cells))
                   : kNoCell);
  }
  return grid;
}

// The trials on the grid of each parameter, so that importance over a resample of them is a matter
// of counting.
class GridTrials {
 public:
  GridTrials(const SearchSpace& space, const std::vector<AssessedTrial>& trials) {
    for (const Parameter& parameter : space.parameters) grid_.push_back(OnGrid(parameter, trials));
    for (const AssessedTrial& trial : trials) losses_.push_back(trial.loss);
    by_loss_.resize(trials.size());
    std::iota(by_loss_.begin(), by_loss_.end(), size_t{0});
    std::sort(by_loss_.begin(), by_loss_.end(),
              [this](size_t a, size_t b) { return losses_[a] < losses_[b]; });
  }

  // Not normalised, in the order of the space's parameters. `counts`: how often each trial counts,
  // together as many as there are trials.
  std::vector<ParameterImportance> Weights(const std::vector<int32_t>& counts) const {
    const double target_loss = TargetLoss(counts);
    std::vector<ParameterImportance> weights;
    for (const GridParameter& parameter : grid_) {
      weights.push_back({parameter.name, Importance(parameter, counts, target_loss)});
    }
    return weights;
  }

  size_t num_trials() const { return losses_.size(); }

 private:
  // The loss up to which a trial belongs to the best.
  double TargetLoss(const std::vector<int32_t>& counts) const {
    auto left = static_cast<int64_t>(std::ceil(kTargetShare * static_cast<double>(counts.size())));
    for (const size_t trial : by_loss_) {
      left -= counts[trial];
      if (left <= 0) return losses_[trial];
    }
    return losses_[by_loss_.back()];
  }

  // Divergence among the trials that have the parameter, weighted by how often the best and all do.
  double Importance(const GridParameter& parameter, const std::vector<int32_t>& counts,
                    double target_loss) const {
    if (parameter.num_cells == 0) return 0.0;
    Histogram target(parameter.num_cells, 0.0);
    Histogram all(parameter.num_cells, 0.0);
    double num_target = 0.0;
    for (size_t trial = 0; trial < counts.size(); ++trial) {
      const bool is_target = losses_[trial] <= target_loss;
      if (is_target) num_target += counts[trial];
      const int32_t cell = parameter.cells[trial];
      if (cell == kNoCell) continue;
      all[static_cast<size_t>(cell)] += counts[trial];
      if (is_target) target[static_cast<size_t>(cell)] += counts[trial];
    }
    const double num_have = Sum(all);
    const double num_target_have = Sum(target);
    if (num_target_have == 0.0 || num_have < kFewestTrials) return 0.0;
    // In one cell the best lie as all do, but the prior weighs more on fewer trials.
    if (std::count(all.begin(), all.end(), 0.0) + 1 == std::ssize(all)) return 0.0;
    const double target_share = num_target_have / num_target;
    const double all_share = num_have / static_cast<double>(counts.size());
    return target_share * target_share / all_share *
           PearsonDivergence(Masses(parameter.is_categorical, target),
                             Masses(parameter.is_categorical, all));
  }

  std::vector<GridParameter> grid_;
  std::vector<double> losses_;
  std::vector<size_t> by_loss_;
};

}  // namespace

absl::StatusOr<std::vector<ParameterImportance>> PedAnovaImportance(
    const SearchSpace& space, const std::vector<AssessedTrial>& trials) {
  HPO_RETURN_IF_ERROR(CheckAssessable(trials));
  return Normalized(GridTrials(space, trials).Weights(std::vector<int32_t>(trials.size(), 1)));
}

absl::StatusOr<ResampledImportance> ResampledPedAnova(const SearchSpace& space,
                                                      const std::vector<AssessedTrial>& trials) {
  HPO_RETURN_IF_ERROR(CheckAssessable(trials));
  const GridTrials grid(space, trials);
  std::vector<int32_t> counts(trials.size(), 1);
  ResampledImportance resampled;
  HPO_ASSIGN_OR_RETURN(resampled.shares, Normalized(grid.Weights(counts)));
  const size_t num_resamples =
      std::clamp(kMostDraws / trials.size(), kFewestResamples, kMostResamples);
  for (uint64_t resample = 0; resample < num_resamples; ++resample) {
    Rng rng(kResampleSeed, resample);
    std::fill(counts.begin(), counts.end(), 0);
    for (size_t drawn = 0; drawn < trials.size(); ++drawn) {
      ++counts[static_cast<size_t>(rng.Below(trials.size()))];
    }
    // Of few trials a resample may be one trial again and again, which explains nothing.
    absl::StatusOr<std::vector<ParameterImportance>> shares = Normalized(grid.Weights(counts));
    if (shares.ok()) resampled.resamples.push_back(*std::move(shares));
  }
  return resampled;
}

}  // namespace hpo
