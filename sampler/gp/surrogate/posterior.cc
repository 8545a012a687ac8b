#include "sampler/gp/surrogate/posterior.h"

#include <algorithm>
#include <cmath>

#include "Eigen/Core"
#include "common/base/status.h"
#include "sampler/gp/surrogate/prediction_lanes.h"

namespace hpo::sampler {
namespace {

using Values = Eigen::Map<Eigen::ArrayXd>;
using ConstValues = Eigen::Map<const Eigen::ArrayXd>;

// Least variance left, as a part of the prior's: below lies rounding.
constexpr double kLeastVariance = 1e-14;

// How many of the first points both tables share.
size_t CommonPrefix(const PointTable& a, const PointTable& b) {
  size_t common = std::min(a.size(), b.size());
  for (size_t axis = 0; axis < a.num_axes(); ++axis) {
    const auto begin = a.column(axis).begin();
    const auto end = begin + static_cast<ptrdiff_t>(common);
    common = static_cast<size_t>(std::mismatch(begin, end, b.column(axis).begin()).first - begin);
  }
  return common;
}

ConstValues Head(const std::vector<double>& values, size_t count) {
  return {values.data(), static_cast<Eigen::Index>(count)};
}

}  // namespace

void Posterior::SetPoints(const PointTable& points) {
  HPO_CHECK(points.num_axes() == points_.num_axes());
  const size_t common = CommonPrefix(points_, points);
  points_.Truncate(common);
  factor_.Truncate(common);
  std::vector<double> covariances;
  for (size_t i = common; i < points.size(); ++i) {
    const std::vector<double> point = points.Point(i);
    Covariances(kernel_, points_, point, i, covariances);
    factor_.Append({covariances.data(), i}, kernel_.scale + kernel_.noise);
    points_.Append(point);
  }
}

void Posterior::SetTargets(std::span<const double> targets) {
  HPO_CHECK(targets.size() <= points_.size());
  targets_.assign(targets.begin(), targets.end());
  alpha_ = targets_;
  factor_.SolveLower(alpha_);
  factor_.SolveUpper(alpha_);
}

std::vector<double> Posterior::Means() const {
  std::vector<double> means;
  for (size_t i = 0; i < alpha_.size(); ++i) {
    means.push_back(targets_[i] - kernel_.noise * alpha_[i]);
  }
  for (size_t i = alpha_.size(); i < points_.size(); ++i) {
    means.push_back(PredictMean(points_.Point(i), nullptr));
  }
  return means;
}

double Posterior::PredictMean(std::span<const double> x, std::vector<double>* slopes) const {
  std::vector<double> covariances;
  CovarianceSlopes by;
  const size_t observed = alpha_.size();
  Covariances(kernel_, points_, x, observed, covariances, slopes != nullptr ? &by : nullptr);
  const ConstValues alpha = Head(alpha_, observed);
  if (slopes != nullptr) {
    slopes->assign(x.size(), 0.0);
    for (size_t axis = 0; axis < x.size(); ++axis) {
      const Eigen::ArrayXd pull = 2.0 * kernel_.weights[axis] *
                                  (x[axis] - Head(points_.column(axis), observed)) *
                                  Head(by.BySquare(axis), observed);
      (*slopes)[axis] = pull.matrix().dot(alpha.matrix());
    }
  }
  return Head(covariances, observed).matrix().dot(alpha.matrix());
}

Prediction Posterior::PredictionOf(double mean, double explained) const {
  const double variance = std::max(kernel_.scale - explained, kLeastVariance * kernel_.scale);
  return {mean, std::sqrt(variance)};
}

std::vector<Prediction> Posterior::Predict(std::span<const std::vector<double>> points) const {
  std::vector<const double*> columns;
  for (size_t axis = 0; axis < points_.num_axes(); ++axis) {
    columns.push_back(points_.column(axis).data());
  }
  const ProcessView view{.num_axes = columns.size(),
                         .num_points = points_.size(),
                         .num_observed = alpha_.size(),
                         .columns = columns.data(),
                         .weights = kernel_.weights.data(),
                         .scale = kernel_.scale,
                         .additive = kernel_.additive,
                         .factor = factor_.rows().data(),
                         .alpha = alpha_.data()};
  std::vector<double> positions(columns.size() * kPointsTogether);
  std::vector<double> scratch(points_.size() * kPointsTogether);
  std::vector<Prediction> predictions;
  for (size_t begin = 0; begin < points.size(); begin += kPointsTogether) {
    const size_t end = std::min(begin + kPointsTogether, points.size());
    for (size_t lane = 0; lane < kPointsTogether; ++lane) {
      const std::vector<double>& point = points[std::min(begin + lane, end - 1)];
      for (size_t axis = 0; axis < columns.size(); ++axis) {
        positions[axis * kPointsTogether + lane] = point[axis];
      }
    }
    PredictedLanes lanes;
    PredictTogether(view, positions.data(), scratch.data(), lanes);
    for (size_t lane = 0; lane < end - begin; ++lane) {
      predictions.push_back(PredictionOf(lanes.mean[lane], lanes.explained[lane]));
    }
  }
  return predictions;
}

Prediction Posterior::Predict(std::span<const double> x, PredictionSlopes* slopes) const {
  std::vector<double> covariances;
  CovarianceSlopes by;
  const size_t size = points_.size();
  Covariances(kernel_, points_, x, size, covariances, slopes != nullptr ? &by : nullptr);
  const size_t observed = alpha_.size();
  Prediction result;
  result.mean = Head(covariances, observed).matrix().dot(Head(alpha_, observed).matrix());
  std::vector<double> solved(covariances.begin(),
                             covariances.begin() + static_cast<ptrdiff_t>(size));
  factor_.SolveLower(solved);
  const double explained = Head(solved, size).matrix().squaredNorm();
  result = PredictionOf(result.mean, explained);
  if (slopes == nullptr) return result;
  factor_.SolveUpper(solved);
  slopes->mean.assign(x.size(), 0.0);
  slopes->deviation.assign(x.size(), 0.0);
  std::vector<double> pull(size);
  for (size_t axis = 0; axis < x.size(); ++axis) {
    Values(pull.data(), static_cast<Eigen::Index>(size)) =
        2.0 * kernel_.weights[axis] * (x[axis] - Head(points_.column(axis), size)) *
        Head(by.BySquare(axis), size);
    slopes->mean[axis] = Head(pull, observed).matrix().dot(Head(alpha_, observed).matrix());
    slopes->deviation[axis] =
        -Head(pull, size).matrix().dot(Head(solved, size).matrix()) / result.deviation;
  }
  return result;
}

}  // namespace hpo::sampler
