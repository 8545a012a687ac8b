#include "common/interop/importance/ped_anova.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/base/status.h"
#include "common/interop/importance/assessment.h"

namespace hpo {
namespace {

constexpr double kTargetShare = 0.1;
constexpr int64_t kMostCells = 50;
constexpr double kPriorWeight = 1.0;
constexpr size_t kFewestTrials = 2;  // that have a parameter
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

struct Kernel {
  double cell = 0.0;
  double weight = 0.0;
};

std::vector<Kernel> KernelsOf(const std::vector<int64_t>& cells, int64_t num_cells) {
  std::vector<double> counts(static_cast<size_t>(num_cells), 0.0);
  for (const int64_t cell : cells) counts[static_cast<size_t>(cell)] += 1.0;
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

// A choice's kernel gives it one more than each choice gets from the prior.
void AddChoice(double choice, double prior, double weight, std::vector<double>& masses) {
  const double total = 1.0 + prior * static_cast<double>(masses.size());
  for (double& mass : masses) mass += weight * prior / total;
  masses[static_cast<size_t>(choice)] += weight / total;
}

// The smoothed distribution over the cells, a prior of one trial's weight included.
std::vector<double> Masses(const Domain& domain, const std::vector<int64_t>& cells,
                           int64_t num_cells) {
  const std::vector<Kernel> kernels = KernelsOf(cells, num_cells);
  const double total = static_cast<double>(cells.size()) + kPriorWeight;
  std::vector<double> masses(static_cast<size_t>(num_cells), 0.0);
  const auto width = static_cast<double>(num_cells);
  if (NumChoices(domain) > 0) {
    const double prior = kPriorWeight / static_cast<double>(kernels.size() + 1);
    for (const Kernel& kernel : kernels) {
      AddChoice(kernel.cell, prior, kernel.weight / total, masses);
    }
    for (double& mass : masses) mass += kPriorWeight / total / width;
  } else {
    const double sigma = Bandwidth(kernels);
    for (const Kernel& kernel : kernels) {
      AddNormal(kernel.cell, sigma, kernel.weight / total, masses);
    }
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

// The loss up to which a trial belongs to the best.
double TargetLoss(const std::vector<AssessedTrial>& trials) {
  std::vector<double> losses;
  for (const AssessedTrial& trial : trials) losses.push_back(trial.loss);
  const auto num_best =
      static_cast<int64_t>(std::ceil(kTargetShare * static_cast<double>(trials.size())));
  const auto last = losses.begin() + (num_best - 1);
  std::nth_element(losses.begin(), last, losses.end());
  return *last;
}

// Divergence among the trials that have the parameter, weighted by how often the best and all do.
double Importance(const Parameter& parameter, const std::vector<AssessedTrial>& trials,
                  double target_loss) {
  const int64_t num_cells = NumCells(parameter.domain);
  if (num_cells < 2) return 0.0;
  std::vector<int64_t> target;
  std::vector<int64_t> all;
  int64_t num_target = 0;
  for (const AssessedTrial& trial : trials) {
    const bool is_target = trial.loss <= target_loss;
    num_target += is_target ? 1 : 0;
    const auto found = trial.params.find(parameter.name);
    if (found == trial.params.end()) continue;
    const auto coordinate = Coordinate(parameter.domain, found->second);
    if (!coordinate.has_value()) continue;
    all.push_back(CellOf(parameter.domain, *coordinate, num_cells));
    if (is_target) target.push_back(all.back());
  }
  if (target.empty() || all.size() < kFewestTrials) return 0.0;
  const double target_share = static_cast<double>(target.size()) / static_cast<double>(num_target);
  const double all_share = static_cast<double>(all.size()) / static_cast<double>(trials.size());
  return target_share * target_share / all_share *
         PearsonDivergence(Masses(parameter.domain, target, num_cells),
                           Masses(parameter.domain, all, num_cells));
}

}  // namespace

absl::StatusOr<std::vector<ParameterImportance>> PedAnovaImportance(
    const SearchSpace& space, const std::vector<AssessedTrial>& trials) {
  HPO_RETURN_IF_ERROR(CheckAssessable(trials));
  const double target_loss = TargetLoss(trials);
  std::vector<ParameterImportance> weights;
  for (const Parameter& parameter : space.parameters) {
    weights.push_back({parameter.name, Importance(parameter, trials, target_loss)});
  }
  return Normalized(std::move(weights));
}

}  // namespace hpo
