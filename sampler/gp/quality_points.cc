#include "sampler/gp/quality_points.h"

#include <bit>
#include <limits>
#include <span>
#include <utility>

#include "sampler/gp/surrogate/loss_scale.h"

namespace hpo::sampler {
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
  result.values = NormalizeLosses(ValuesAt(data.losses, indices), StartingReference(data.losses));
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
  QualityPoints points{.fitted = Select(inputs, data, SelectObservations(settled, kMostFitted)),
                       .observed = Select(inputs, data, kept)};
  for (const size_t i : kept) points.may_be_best.push_back(data.feasible[i]);
  points.loss_per_step = LossPerStep(ValuesAt(data.losses, kept), points.observed.values);
  points.trials = std::move(kept);
  return points;
}

QualityPoints PointsNear(const TrustRegion& region, const TrainingData& data,
                         const QualityPoints& all) {
  LabelledPoints observed{PointTable(all.observed.points.num_axes()), {}};
  std::vector<bool> may_be_best;
  std::vector<size_t> trials;
  for (size_t k = 0; k < region.nearest.size(); ++k) {
    const size_t i = region.nearest[k];
    observed.points.Append(all.observed.points.Point(i));
    may_be_best.push_back(all.may_be_best[i] && region.in_box[k]);
    trials.push_back(all.trials[i]);
  }
  const std::vector<double> losses = ValuesAt(data.losses, trials);
  observed.values = NormalizeLosses(losses, ReferenceOf(losses));
  const double loss_per_step = LossPerStep(losses, observed.values);
  return {.fitted = observed,
          .observed = std::move(observed),
          .may_be_best = std::move(may_be_best),
          .trials = std::move(trials),
          .loss_per_step = loss_per_step};
}

}  // namespace hpo::sampler
