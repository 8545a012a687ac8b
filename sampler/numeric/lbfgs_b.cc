#include "sampler/numeric/lbfgs_b.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "Eigen/Core"
#include "Eigen/LU"
#include "common/base/status.h"
#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kSufficientDecrease = 1e-4;
constexpr int kMaxBacktracks = 20;
// Least s'y, relative to y'y, of a pair that is kept.
constexpr double kLeastCurvature = 2.2e-16;

struct Box {
  VectorXd lower;
  VectorXd upper;

  VectorXd Project(const VectorXd& x) const { return x.cwiseMax(lower).cwiseMin(upper); }
};

// The quadratic model's matrix B = theta I - W M W' from the last pairs (s, y) of steps and
// differences of gradients; W = [Y, theta S]. Matrices of 2 * memory rows are so small that Eigen
// does not cut their products to the caches.
class CompactMatrix {
 public:
  explicit CompactMatrix(int memory) : memory_(static_cast<size_t>(memory)) {}

  double theta() const { return theta_; }
  Index columns() const { return static_cast<Index>(2 * steps_.size()); }
  const MatrixXd& middle() const { return middle_; }

  void Add(VectorXd step, VectorXd change) {
    const double curvature = step.dot(change);
    if (!(curvature > kLeastCurvature * change.squaredNorm())) return;
    if (steps_.size() == memory_) {
      steps_.erase(steps_.begin());
      changes_.erase(changes_.begin());
    }
    theta_ = change.squaredNorm() / curvature;
    steps_.push_back(std::move(step));
    changes_.push_back(std::move(change));
    BuildMiddle();
  }

  void Clear() {
    steps_.clear();
    changes_.clear();
    theta_ = 1.0;
    middle_.resize(0, 0);
  }

  // Row `variable` of W.
  VectorXd Row(Index variable) const {
    const Index pairs = columns() / 2;
    VectorXd row(columns());
    for (Index i = 0; i < pairs; ++i) {
      row[i] = changes_[static_cast<size_t>(i)][variable];
      row[pairs + i] = theta_ * steps_[static_cast<size_t>(i)][variable];
    }
    return row;
  }

  // W' v.
  VectorXd Transposed(const VectorXd& v) const {
    const Index pairs = columns() / 2;
    VectorXd result(columns());
    for (Index i = 0; i < pairs; ++i) {
      result[i] = changes_[static_cast<size_t>(i)].dot(v);
      result[pairs + i] = theta_ * steps_[static_cast<size_t>(i)].dot(v);
    }
    return result;
  }

 private:
  void BuildMiddle() {
    const Index pairs = columns() / 2;
    MatrixXd inverse = MatrixXd::Zero(2 * pairs, 2 * pairs);
    for (Index i = 0; i < pairs; ++i) {
      const VectorXd& step = steps_[static_cast<size_t>(i)];
      inverse(i, i) = -step.dot(changes_[static_cast<size_t>(i)]);
      for (Index j = 0; j < i; ++j) {
        const double product = step.dot(changes_[static_cast<size_t>(j)]);
        inverse(pairs + i, j) = inverse(j, pairs + i) = product;
      }
      for (Index j = 0; j < pairs; ++j) {
        inverse(pairs + i, pairs + j) = theta_ * step.dot(steps_[static_cast<size_t>(j)]);
      }
    }
    middle_ = inverse.partialPivLu().inverse();
  }

  size_t memory_;
  double theta_ = 1.0;
  std::vector<VectorXd> steps_;
  std::vector<VectorXd> changes_;
  MatrixXd middle_;
};

// The first minimum of the model along the projected steepest descent, and W' (point - x).
struct CauchyPoint {
  VectorXd point;
  VectorXd coefficients;
};

struct Breakpoints {
  VectorXd at;                // by variable; infinity where no bound is met
  std::vector<Index> sorted;  // of those above zero, the nearest first
};

Breakpoints FindBreakpoints(const VectorXd& x, const VectorXd& gradient, const Box& box) {
  Breakpoints found{VectorXd::Constant(x.size(), kUnbounded), {}};
  for (Index i = 0; i < x.size(); ++i) {
    if (gradient[i] < 0.0) found.at[i] = (x[i] - box.upper[i]) / gradient[i];
    if (gradient[i] > 0.0) found.at[i] = (x[i] - box.lower[i]) / gradient[i];
    if (found.at[i] > 0.0) found.sorted.push_back(i);
  }
  std::stable_sort(found.sorted.begin(), found.sorted.end(),
                   [&](Index a, Index b) { return found.at[a] < found.at[b]; });
  return found;
}

CauchyPoint FindCauchyPoint(const VectorXd& x, const VectorXd& gradient, const Box& box,
                            const CompactMatrix& model) {
  const Breakpoints breaks = FindBreakpoints(x, gradient, box);
  CauchyPoint cauchy{x, VectorXd::Zero(model.columns())};
  VectorXd direction = VectorXd::Zero(x.size());
  for (const Index i : breaks.sorted) direction[i] = -gradient[i];
  VectorXd p = model.Transposed(direction);
  double slope = -direction.squaredNorm();
  double curvature = -model.theta() * slope - p.dot(model.middle() * p);
  const double least_curvature = 1e-16 * std::abs(curvature);
  double passed = 0.0;
  double ahead = curvature > 0.0 ? -slope / curvature : 0.0;
  for (const Index b : breaks.sorted) {
    const double interval = breaks.at[b] - passed;
    if (ahead < interval) break;
    cauchy.point[b] = direction[b] > 0.0 ? box.upper[b] : box.lower[b];
    const double moved = cauchy.point[b] - x[b];
    cauchy.coefficients += interval * p;
    const VectorXd row = model.Row(b);
    const VectorXd weighted = model.middle() * row;
    const double g = gradient[b];
    slope += interval * curvature + g * g + model.theta() * g * moved -
             g * weighted.dot(cauchy.coefficients);
    curvature -= model.theta() * g * g + 2.0 * g * weighted.dot(p) + g * g * weighted.dot(row);
    curvature = std::max(curvature, least_curvature);
    p += g * row;
    direction[b] = 0.0;
    passed = breaks.at[b];
    ahead = curvature > 0.0 ? std::max(-slope / curvature, 0.0) : 0.0;
  }
  for (Index i = 0; i < x.size(); ++i) {
    if (direction[i] != 0.0) cauchy.point[i] = x[i] + (passed + ahead) * direction[i];
  }
  cauchy.coefficients += ahead * p;
  cauchy.point = box.Project(cauchy.point);
  return cauchy;
}

// The model's minimum over the variables that the Cauchy point leaves between their bounds.
VectorXd MinimizeOverFree(const VectorXd& x, const VectorXd& gradient, const Box& box,
                          const CompactMatrix& model, const CauchyPoint& cauchy) {
  if (model.columns() == 0) return cauchy.point;
  const VectorXd weighted = model.middle() * cauchy.coefficients;
  VectorXd reduced = VectorXd::Zero(x.size());  // gradient of the model, free variables only
  MatrixXd free_product = MatrixXd::Zero(model.columns(), model.columns());
  std::vector<Index> free;
  for (Index i = 0; i < x.size(); ++i) {
    if (!(cauchy.point[i] > box.lower[i] && cauchy.point[i] < box.upper[i])) continue;
    free.push_back(i);
    const VectorXd row = model.Row(i);
    reduced[i] = gradient[i] + model.theta() * (cauchy.point[i] - x[i]) - row.dot(weighted);
    free_product += row * row.transpose();
  }
  if (free.empty()) return cauchy.point;
  const Index size = model.columns();
  const MatrixXd system =
      MatrixXd::Identity(size, size) - (model.middle() * free_product) / model.theta();
  const VectorXd solved = system.partialPivLu().solve(model.middle() * model.Transposed(reduced));
  VectorXd target = cauchy.point;
  for (const Index i : free) {
    target[i] -= (reduced[i] + model.Row(i).dot(solved) / model.theta()) / model.theta();
  }
  const VectorXd projected = box.Project(target);
  if (!projected.allFinite()) return cauchy.point;
  if (gradient.dot(projected - x) < 0.0) return projected;
  // The projection turned uphill: go from the Cauchy point as far as the box allows.
  double reach = 1.0;
  for (const Index i : free) {
    const double step = target[i] - cauchy.point[i];
    const double bound = step > 0.0 ? box.upper[i] : box.lower[i];
    if (step != 0.0) reach = std::min(reach, (bound - cauchy.point[i]) / step);
  }
  return box.Project(cauchy.point + reach * (target - cauchy.point));
}

struct Iterate {
  VectorXd x;
  VectorXd gradient;
  double value = 0.0;
};

class Minimizer {
 public:
  Minimizer(const SmoothFunction& function, Box box, const LbfgsBOptions& options)
      : function_(function), box_(std::move(box)), options_(options), model_(options.memory) {}

  LbfgsBResult Run(const VectorXd& start) {
    Iterate current = Evaluate(box_.Project(start));
    bool converged = false;
    for (int i = 0; i < options_.max_iterations && !converged; ++i) {
      if (!std::isfinite(current.value) || evaluations_ >= options_.max_evaluations) break;
      if (ProjectedGradient(current) <= options_.gradient_tolerance) {
        converged = true;
        break;
      }
      std::optional<Iterate> next = Step(current);
      if (!next.has_value()) break;
      const double decrease = current.value - next->value;
      const double unit = std::max({std::abs(current.value), std::abs(next->value), 1.0});
      converged = decrease <= options_.value_tolerance * unit;
      model_.Add(next->x - current.x, next->gradient - current.gradient);
      current = *std::move(next);
    }
    return {{current.x.begin(), current.x.end()}, current.value, evaluations_, converged};
  }

 private:
  Iterate Evaluate(VectorXd x) {
    ++evaluations_;
    Iterate result{std::move(x), {}, 0.0};
    result.gradient = VectorXd::Zero(result.x.size());
    const size_t size = static_cast<size_t>(result.x.size());
    result.value = function_({result.x.data(), size}, {result.gradient.data(), size});
    if (!result.gradient.allFinite()) result.value = kUnbounded;
    return result;
  }

  double ProjectedGradient(const Iterate& at) const {
    if (at.x.size() == 0) return 0.0;
    return (box_.Project(at.x - at.gradient) - at.x).cwiseAbs().maxCoeff();
  }

  // The next iterate; nullopt where no decrease is found, even along the steepest descent.
  std::optional<Iterate> Step(const Iterate& current) {
    for (;;) {
      const CauchyPoint cauchy = FindCauchyPoint(current.x, current.gradient, box_, model_);
      const VectorXd target = MinimizeOverFree(current.x, current.gradient, box_, model_, cauchy);
      std::optional<Iterate> next = SearchLine(current, target - current.x);
      if (next.has_value() || model_.columns() == 0) return next;
      model_.Clear();
    }
  }

  std::optional<Iterate> SearchLine(const Iterate& current, const VectorXd& direction) {
    const double slope = current.gradient.dot(direction);
    if (!(slope < 0.0)) return std::nullopt;
    double step = 1.0;
    // Without curvature the length of the gradient says nothing.
    if (model_.columns() == 0) step = std::min(1.0, 1.0 / direction.norm());
    for (int i = 0; i < kMaxBacktracks && evaluations_ < options_.max_evaluations; ++i) {
      Iterate next = Evaluate(box_.Project(current.x + step * direction));
      if (next.value <= current.value + kSufficientDecrease * step * slope) return next;
      // The minimum of the parabola through both values and the slope, kept inside the step.
      const double parabola =
          -slope * step * step / (2.0 * (next.value - current.value - step * slope));
      step = std::isfinite(next.value) ? std::clamp(parabola, 0.1 * step, 0.5 * step) : 0.1 * step;
    }
    return std::nullopt;
  }

  const SmoothFunction& function_;
  Box box_;
  LbfgsBOptions options_;
  CompactMatrix model_;
  int evaluations_ = 0;
};

VectorXd ToVector(std::span<const double> values) {
  return Eigen::Map<const VectorXd>(values.data(), static_cast<Index>(values.size()));
}

}  // namespace

LbfgsBResult MinimizeInBox(const SmoothFunction& function, std::span<const double> start,
                           std::span<const double> lower, std::span<const double> upper,
                           const LbfgsBOptions& options) {
  HPO_CHECK(start.size() == lower.size() && start.size() == upper.size());
  Minimizer minimizer(function, {ToVector(lower), ToVector(upper)}, options);
  return minimizer.Run(ToVector(start));
}

}  // namespace hpo::sampler
