#include "common/interop/importance/fanova.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/interop/importance/assessment.h"
#include "common/interop/importance/partition_tree.h"

namespace hpo {
namespace {

constexpr uint64_t kSeed = 0x66414e4f5641;  // "fANOVA"
constexpr uint64_t kNumTrees = 64;
constexpr size_t kMostRows = 4000;  // of a tree

double Volume(const Box& box) {
  double volume = 1.0;
  for (const Extent& extent : box.extents) volume *= extent.Size();
  return volume;
}

// The boxes of a tree with what is asked of them for each dimension.
struct Partition {
  std::vector<Box> boxes;
  std::vector<double> volumes;
  double mean = 0.0;  // of the value, over the cube
  double variance = 0.0;
};

Partition Measured(std::vector<Box> boxes) {
  Partition partition{.boxes = std::move(boxes)};
  for (const Box& box : partition.boxes) partition.volumes.push_back(Volume(box));
  for (size_t i = 0; i < partition.boxes.size(); ++i) {
    partition.mean += partition.volumes[i] * partition.boxes[i].value;
  }
  for (size_t i = 0; i < partition.boxes.size(); ++i) {
    const double excess = partition.boxes[i].value - partition.mean;
    partition.variance += partition.volumes[i] * excess * excess;
  }
  return partition;
}

// Variance of the mean over all other dimensions, along a categorical one.
double VarianceOverChoices(const Partition& partition, size_t dimension) {
  const size_t num_choices = partition.boxes.front().extents[dimension].choices.size();
  std::vector<double> marginal(num_choices, 0.0);
  for (size_t i = 0; i < partition.boxes.size(); ++i) {
    const Box& box = partition.boxes[i];
    const Extent& extent = box.extents[dimension];
    const double weight = partition.volumes[i] / extent.Size();
    for (size_t choice = 0; choice < num_choices; ++choice) {
      if (extent.choices[choice]) marginal[choice] += weight * (box.value - partition.mean);
    }
  }
  double sum = 0.0;
  for (const double excess : marginal) sum += excess * excess;
  return sum / static_cast<double>(num_choices);
}

// The same along a numeric one: a step function that each box raises where it begins and lowers
// where it ends. Few boxes begin at a place of their own.
double VarianceOverInterval(const Partition& partition, size_t dimension) {
  absl::flat_hash_map<double, double> change_at;
  for (size_t i = 0; i < partition.boxes.size(); ++i) {
    const Box& box = partition.boxes[i];
    const Extent& extent = box.extents[dimension];
    const double height = partition.volumes[i] / extent.Size() * (box.value - partition.mean);
    change_at[extent.low] += height;
    change_at[extent.high] -= height;
  }
  std::vector<std::pair<double, double>> changes(change_at.begin(), change_at.end());
  std::sort(changes.begin(), changes.end());
  double variance = 0.0;
  double excess = 0.0;
  double begin = 0.0;
  for (const auto& [position, change] : changes) {
    variance += (position - begin) * excess * excess;
    excess += change;
    begin = position;
  }
  return variance;
}

// The parameters that can be assessed, and the trials in their coordinates.
struct Problem {
  std::vector<std::string> names;
  RegressionData data;
};

// A column of inputs; empty where a trial lacks the parameter or it has one value only.
std::vector<double> ColumnOf(const Parameter& parameter, const std::vector<AssessedTrial>& trials) {
  const bool categorical = NumChoices(parameter.domain) > 0;
  const Range range = RangeOf(parameter.domain);
  if (NumValues(parameter.domain).value_or(2) < 2) return {};
  std::vector<double> column;
  for (const AssessedTrial& trial : trials) {
    const auto found = trial.params.find(parameter.name);
    if (found == trial.params.end()) return {};
    const auto coordinate = Coordinate(parameter.domain, found->second);
    if (!coordinate.has_value()) return {};
    const double share = (*coordinate - range.low) / (range.high - range.low);
    column.push_back(categorical ? *coordinate : std::clamp(share, 0.0, 1.0));
  }
  return column;
}

Problem ProblemOf(const SearchSpace& space, const std::vector<AssessedTrial>& trials) {
  Problem problem;
  for (const Parameter& parameter : space.parameters) {
    std::vector<double> column = ColumnOf(parameter, trials);
    if (column.empty()) continue;
    problem.names.push_back(parameter.name);
    problem.data.inputs.push_back(std::move(column));
    problem.data.num_choices.push_back(NumChoices(parameter.domain));
  }
  // Shares do not depend on the unit, and squares of large losses overflow.
  double largest = 0.0;
  for (const AssessedTrial& trial : trials) largest = std::max(largest, std::abs(trial.loss));
  if (!(largest > 0.0)) largest = 1.0;
  for (const AssessedTrial& trial : trials) {
    problem.data.outputs.push_back(trial.loss / largest);
  }
  return problem;
}

// As many rows as there are, or as a tree takes, drawn with replacement.
std::vector<size_t> Bootstrap(size_t num_rows, Rng& rng) {
  std::vector<size_t> rows(std::min(num_rows, kMostRows));
  for (size_t& row : rows) row = static_cast<size_t>(rng.Below(num_rows));
  return rows;
}

}  // namespace

absl::StatusOr<ResampledImportance> ResampledFanova(const SearchSpace& space,
                                                    const std::vector<AssessedTrial>& trials) {
  HPO_RETURN_IF_ERROR(CheckAssessable(trials));
  Problem problem = ProblemOf(space, trials);
  const PartitionGrower grower(std::move(problem.data));
  std::vector<ParameterImportance> none;
  for (const std::string& name : problem.names) none.push_back({name, 0.0});
  std::vector<ParameterImportance> sums = none;
  ResampledImportance resampled;
  for (uint64_t tree = 0; tree < kNumTrees; ++tree) {
    Rng rng(kSeed, tree);
    const Partition partition = Measured(grower.Grow(Bootstrap(trials.size(), rng), rng));
    if (!(partition.variance > 0.0)) continue;
    std::vector<ParameterImportance> weights = none;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double along = grower.data().num_choices[i] > 0 ? VarianceOverChoices(partition, i)
                                                            : VarianceOverInterval(partition, i);
      weights[i].share = along / partition.variance;
      sums[i].share += weights[i].share;
    }
    absl::StatusOr<std::vector<ParameterImportance>> shares = Normalized(std::move(weights));
    if (shares.ok()) resampled.resamples.push_back(*std::move(shares));
  }
  HPO_ASSIGN_OR_RETURN(resampled.shares, Normalized(std::move(sums)));
  return resampled;
}

absl::StatusOr<std::vector<ParameterImportance>> FanovaImportance(
    const SearchSpace& space, const std::vector<AssessedTrial>& trials) {
  HPO_ASSIGN_OR_RETURN(ResampledImportance resampled, ResampledFanova(space, trials));
  return std::move(resampled.shares);
}

}  // namespace hpo
