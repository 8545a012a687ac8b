#include "sampler/gp/surrogate/matern_kernel.h"

#include "Eigen/Core"
#include "common/base/status.h"
#include "sampler/numeric/packet_math.h"

namespace hpo::sampler {
namespace {

constexpr double kSqrt5 = 2.23606797749978969641;

using Values = Eigen::Map<Eigen::ArrayXd>;
using ConstValues = Eigen::Map<const Eigen::ArrayXd>;

Values All(std::vector<double>& values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

// Of each q in `squares`, of padded size, scale * m(q) in its place; the derivative into `slopes`.
void ToMatern(double scale, std::vector<double>& squares, std::vector<double>* slopes) {
  for (size_t i = 0; i < squares.size(); i += kPacketBlock) {
    Eigen::Map<Eigen::Array4d> block(squares.data() + i);
    const Eigen::Array4d scaled = kSqrt5 * block.sqrt();
    const Eigen::Array4d decay = scale * (-scaled).exp();
    if (slopes != nullptr) {
      Eigen::Map<Eigen::Array4d>(slopes->data() + i) = (-5.0 / 6.0) * (1.0 + scaled) * decay;
    }
    block = (1.0 + scaled + scaled.square() / 3.0) * decay;
  }
}

}  // namespace

void PointTable::Append(std::span<const double> point) {
  HPO_CHECK(point.size() == columns_.size());
  for (size_t axis = 0; axis < columns_.size(); ++axis) columns_[axis].push_back(point[axis]);
  ++size_;
}

void PointTable::Truncate(size_t size) {
  HPO_CHECK(size <= size_);
  for (std::vector<double>& column : columns_) column.resize(size);
  size_ = size;
}

std::vector<double> PointTable::Point(size_t index) const {
  std::vector<double> point;
  for (const std::vector<double>& column : columns_) point.push_back(column[index]);
  return point;
}

void Covariances(const KernelParameters& kernel, const PointTable& points,
                 std::span<const double> x, size_t count, std::vector<double>& values,
                 CovarianceSlopes* slopes) {
  const size_t padded = PaddedSize(count);
  values.assign(padded, 0.0);
  const size_t num_axes = points.num_axes();
  const auto squares_along = [&](size_t axis) {
    const ConstValues column(points.column(axis).data(), static_cast<Eigen::Index>(count));
    return kernel.weights[axis] * (column - x[axis]).square().min(1.0);
  };
  Values squares(values.data(), static_cast<Eigen::Index>(count));
  for (size_t axis = 0; axis < num_axes; ++axis) squares += squares_along(axis);
  const bool sums = kernel.additive > 0.0;
  std::vector<double> shared;  // slopes of what all axes have together
  if (slopes != nullptr) shared.resize(padded);
  ToMatern((1.0 - kernel.additive) * kernel.scale, values, slopes != nullptr ? &shared : nullptr);
  if (slopes != nullptr) {
    slopes->by_square.assign(sums ? num_axes : 1, shared);
    slopes->by_additive.clear();
  }
  if (!sums) return;

  const double axes = static_cast<double>(num_axes);
  std::vector<double> total(padded, 0.0);
  std::vector<double> along(padded);
  for (size_t axis = 0; axis < num_axes; ++axis) {
    along.assign(padded, 0.0);
    Values(along.data(), static_cast<Eigen::Index>(count)) = axes * squares_along(axis);
    ToMatern(kernel.additive * kernel.scale / axes, along, slopes != nullptr ? &shared : nullptr);
    All(total) += All(along);
    // d(d * q_a) / d(q_a) is the number of axes.
    if (slopes != nullptr) All(slopes->by_square[axis]) += axes * All(shared);
  }
  if (slopes != nullptr) {
    slopes->by_additive.resize(padded);
    All(slopes->by_additive) = All(total) / kernel.additive - All(values) / (1.0 - kernel.additive);
  }
  All(values) += All(total);
}

}  // namespace hpo::sampler
