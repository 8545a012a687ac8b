#include "common/interop/importance/fanova.h"

#include <algorithm>
#include <map>

#include "common/base/status.h"
#include "common/interop/importance/assessment.h"
#include "common/interop/importance/partition_tree.h"

namespace hpo {
namespace {

constexpr uint64_t kSeed = 0x66414e4f5641;  // "fANOVA"
constexpr uint64_t kNumTrees = 64;

double Volume(const Box& box) {
  double volume = 1.0;
  for (const Extent& extent : box.extents) volume *= extent.Size();
  return volume;
}

struct Moments {
  double mean = 0.0;
  double variance = 0.0;
};

// Of a partition's value, over the cube.
Moments MomentsOf(const std::vector<Box>& boxes) {
  Moments moments;
  for (const Box& box : boxes) moments.mean += Volume(box) * box.value;
  for (const Box& box : boxes) {
    const double excess = box.value - moments.mean;
    moments.variance += Volume(box) * excess * excess;
  }
  return moments;
}

// Variance of the mean over all other dimensions, along a categorical one.
double VarianceOverChoices(const std::vector<Box>& boxes, size_t dimension, double mean) {
  const size_t num_choices = boxes.front().extents[dimension].choices.size();
  std::vector<double> marginal(num_choices, 0.0);
  for (const Box& box : boxes) {
    const Extent& extent = box.extents[dimension];
    const double weight = Volume(box) / extent.Size();
    for (size_t choice = 0; choice < num_choices; ++choice) {
      if (extent.choices[choice]) marginal[choice] += weight * (box.value - mean);
    }
  }
  double sum = 0.0;
  for (const double excess : marginal) sum += excess * excess;
  return sum / static_cast<double>(num_choices);
}

// The same along a numeric one: a step function that each box raises where it begins and lowers
// where it ends.
double VarianceOverInterval(const std::vector<Box>& boxes, size_t dimension, double mean) {
  std::map<double, double> changes;
  for (const Box& box : boxes) {
    const Extent& extent = box.extents[dimension];
    const double height = Volume(box) / extent.Size() * (box.value - mean);
    changes[extent.low] += height;
    changes[extent.high] -= height;
  }
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
  for (const AssessedTrial& trial : trials) problem.data.outputs.push_back(trial.loss);
  return problem;
}

// As many rows as there are, drawn with replacement.
std::vector<size_t> Bootstrap(size_t num_rows, Rng& rng) {
  std::vector<size_t> rows(num_rows);
  for (size_t& row : rows) row = static_cast<size_t>(rng.Below(num_rows));
  return rows;
}

}  // namespace

absl::StatusOr<std::vector<ParameterImportance>> FanovaImportance(
    const SearchSpace& space, const std::vector<AssessedTrial>& trials) {
  HPO_RETURN_IF_ERROR(CheckAssessable(trials));
  const Problem problem = ProblemOf(space, trials);
  std::vector<ParameterImportance> weights;
  for (const std::string& name : problem.names) weights.push_back({name, 0.0});
  for (uint64_t tree = 0; tree < kNumTrees; ++tree) {
    Rng rng(kSeed, tree);
    const std::vector<Box> boxes = GrowPartition(problem.data, Bootstrap(trials.size(), rng), rng);
    const Moments moments = MomentsOf(boxes);
    if (!(moments.variance > 0.0)) continue;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double along = problem.data.num_choices[i] > 0
                               ? VarianceOverChoices(boxes, i, moments.mean)
                               : VarianceOverInterval(boxes, i, moments.mean);
      weights[i].share += along / moments.variance;
    }
  }
  return Normalized(std::move(weights));
}

}  // namespace hpo
