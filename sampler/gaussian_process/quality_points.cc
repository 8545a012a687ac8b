#include "sampler/gaussian_process/quality_points.h"

#include <bit>
#include <limits>
#include <span>

#include "sampler/gaussian_process/loss_scale.h"

namespace hpo {
namespace {

// The cost of a model grows with the third power of its trials, and fitting repeats it often.
constexpr size_t kMostObservations = 512;
constexpr size_t kMostFitted = 256;

std::vector<double> ValuesAt(std::span<const double> values, std::span<const size_t> indices) {
  std::vector<double> result;
  for (const size_t i : indices) result.push_back(values[i]);
  return result;
}

LabelledPoints Select(const InputSpace& inputs, const TrainingData& data,
                      const std::vector<size_t>& indices) {
  LabelledPoints result{PointTable(inputs.num_axes()), {}};
  for (const size_t i : indices) result.points.Append(inputs.Point(data.observed[i]));
  result.values = NormalizeLosses(ValuesAt(data.losses, indices));
  return result;
}

}  // namespace

size_t FitPoint(size_t count) {
  constexpr size_t kAlwaysUpTo = 32;
  if (count <= kAlwaysUpTo) return count;
  const size_t interval = std::bit_floor(count / 16);
  return count / interval * interval;
}

QualityPoints ChooseQualityPoints(const InputSpace& inputs, const TrainingData& data) {
  const size_t count = data.losses.size();
  // Those that cannot be the best are not kept for their losses.
  std::vector<double> ranked = data.losses;
  for (size_t i = 0; i < count; ++i) {
    if (!data.feasible[i]) ranked[i] = std::numeric_limits<double>::infinity();
  }
  const std::span<const double> settled(ranked.data(), FitPoint(count));
  std::vector<size_t> kept = SelectObservations(settled, kMostObservations);
  for (size_t i = settled.size(); i < count; ++i) kept.push_back(i);
  QualityPoints points{Select(inputs, data, SelectObservations(settled, kMostFitted)),
                       Select(inputs, data, kept)};
  for (const size_t i : kept) points.may_be_best.push_back(data.feasible[i]);
  points.loss_per_step = LossPerStep(ValuesAt(data.losses, kept), points.observed.values);
  return points;
}

}  // namespace hpo
