#include "sampler/gp/acquisition.h"

#include <algorithm>
#include <cmath>

#include "sampler/gp/log_expected_improvement.h"
#include "sampler/numeric/packet_math.h"

namespace hpo::sampler {
namespace {

// A function of a prediction: its value and its derivatives by mean and deviation.
struct Term {
  double value = 0.0;
  double by_mean = 0.0;
  double by_deviation = 0.0;
};

Term LogExpectedImprovement(const Prediction& at, double best) {
  const double z = (best - at.mean) / at.deviation;
  const ValueAndSlope improvement = LogImprovement(z);
  return {PortableLog(at.deviation) + improvement.value, -improvement.slope / at.deviation,
          (1.0 - improvement.slope * z) / at.deviation};
}

Term LowerBound(const Prediction& at, double deviations) {
  return {deviations * at.deviation - at.mean, -1.0, deviations};
}

// An improvement that no study would notice. Beside a barrier improvements must not
// differ by thousands in logarithm: the least one beyond the barrier would outweigh it.
constexpr double kLogFloor = -14.0;

// The logarithm of the improvement plus the floor.
Term WithFloor(const Term& gain) {
  const double larger = std::max(gain.value, kLogFloor);
  const double own = PortableExp(gain.value - larger);
  const double sum = own + PortableExp(kLogFloor - larger);
  return {larger + PortableLog(sum), gain.by_mean * own / sum, gain.by_deviation * own / sum};
}

// How sure a configuration must be to run: its label is below 0 by this many deviations.
constexpr double kConfidence = 0.5;
// Of the barrier there: a deviation less weighs like the tail of a normal six deviations further
// out.
constexpr double kSteepness = 6.0;

// Near 0 where the label is surely below 0, falling steeply where not.
Term LogConfidence(const Prediction& at, double noise) {
  const double deviation = std::sqrt(at.deviation * at.deviation + noise);
  const double z = -at.mean / deviation;
  const ValueAndSlope barrier = LogProbability(kSteepness * (z - kConfidence));
  const double by_z = kSteepness * barrier.slope;
  return {barrier.value, -by_z / deviation, -by_z * z * at.deviation / (deviation * deviation)};
}

// Of quality: the improvement on `best`, or with `deviations` how good it may be. `beside`: whether
// barriers stand next to it.
Term GainOf(const Prediction& at, double best, std::optional<double> deviations, bool beside) {
  const Term gain =
      deviations.has_value() ? LowerBound(at, *deviations) : LogExpectedImprovement(at, best);
  return beside ? WithFloor(gain) : gain;
}

void AddSlopes(const Term& term, const PredictionSlopes& by_axis, const InputSpace& inputs,
               std::span<const size_t> parameters, double* slopes) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::optional<size_t> axis = inputs.ContinuousAxis(parameters[i]);
    if (!axis.has_value()) continue;
    slopes[i] += term.by_mean * by_axis.mean[*axis] + term.by_deviation * by_axis.deviation[*axis];
  }
}

}  // namespace

Prediction Surrogate::Predict(std::span<const double> x, PredictionSlopes* slopes) const {
  Prediction result = posterior->Predict(x, slopes);
  if (trend != nullptr) {
    std::vector<double> by_axis;
    result.mean += trend->At(x, slopes != nullptr ? &by_axis : nullptr);
    for (size_t i = 0; i < by_axis.size(); ++i) slopes->mean[i] += by_axis[i];
  }
  return result;
}

std::vector<Prediction> Surrogate::Predict(std::span<const Codes> configurations) const {
  std::vector<std::vector<double>> points;
  for (const Codes& codes : configurations) points.push_back(inputs->Point(codes));
  std::vector<Prediction> results = posterior->Predict(points);
  for (size_t i = 0; trend != nullptr && i < points.size(); ++i) {
    results[i].mean += trend->At(points[i], nullptr);
  }
  return results;
}

AcquisitionParts Acquisition::PartsOf(const Codes& codes) const {
  AcquisitionParts parts;
  parts.log_improvement =
      LogExpectedImprovement(quality_.Predict({&codes, 1}).front(), best_).value;
  parts.negligible = !barriers_.empty() && parts.log_improvement < kLogFloor;
  for (const Surrogate& barrier : barriers_) {
    const Prediction label = barrier.Predict({&codes, 1}).front();
    const double noise = barrier.posterior->kernel().noise;
    const double z = -label.mean / std::sqrt(label.deviation * label.deviation + noise);
    parts.safe.push_back(PortableExp(LogProbability(z).value));
  }
  return parts;
}

std::vector<double> Acquisition::Scores(std::span<const Codes> configurations) const {
  std::vector<double> scores;
  for (const Prediction& at : quality_.Predict(configurations)) {
    scores.push_back(GainOf(at, best_, deviations_, !barriers_.empty()).value);
  }
  for (const Surrogate& barrier : barriers_) {
    const std::vector<Prediction> labels = barrier.Predict(configurations);
    const double noise = barrier.posterior->kernel().noise;
    for (size_t i = 0; i < scores.size(); ++i) scores[i] += LogConfidence(labels[i], noise).value;
  }
  return scores;
}

double Acquisition::Score(const Codes& codes, std::span<const size_t> parameters,
                          std::span<double> slopes) const {
  std::fill(slopes.begin(), slopes.end(), 0.0);
  PredictionSlopes by_axis;
  const std::vector<double> point = quality_.inputs->Point(codes);
  const Term gain =
      GainOf(quality_.Predict(point, &by_axis), best_, deviations_, !barriers_.empty());
  AddSlopes(gain, by_axis, *quality_.inputs, parameters, slopes.data());
  double score = gain.value;
  for (const Surrogate& barrier : barriers_) {
    const Posterior& labels = *barrier.posterior;
    const Prediction at = labels.Predict(barrier.inputs->Point(codes), &by_axis);
    const Term runs = LogConfidence(at, labels.kernel().noise);
    AddSlopes(runs, by_axis, *barrier.inputs, parameters, slopes.data());
    score += runs.value;
  }
  return score;
}

}  // namespace hpo::sampler
