#include "sampler/gp/matern_kernel.h"

#include "Eigen/Core"
#include "common/base/status.h"
#include "sampler/numeric/packet_math.h"

namespace hpo {
namespace {

constexpr double kSqrt5 = 2.23606797749978969641;

using Values = Eigen::Map<Eigen::ArrayXd>;
using ConstValues = Eigen::Map<const Eigen::ArrayXd>;

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
                 std::vector<double>* slopes) {
  const size_t padded = PaddedSize(count);
  values.assign(padded, 0.0);
  if (slopes != nullptr) slopes->resize(padded);
  Values squares(values.data(), static_cast<Eigen::Index>(count));
  for (size_t axis = 0; axis < points.num_axes(); ++axis) {
    const ConstValues column(points.column(axis).data(), static_cast<Eigen::Index>(count));
    squares += kernel.weights[axis] * (column - x[axis]).square().min(1.0);
  }
  for (size_t i = 0; i < padded; i += kPacketBlock) {
    Eigen::Map<Eigen::Array4d> block(values.data() + i);
    const Eigen::Array4d scaled = kSqrt5 * block.sqrt();
    const Eigen::Array4d decay = kernel.scale * (-scaled).exp();
    if (slopes != nullptr) {
      Eigen::Map<Eigen::Array4d>(slopes->data() + i) = (-5.0 / 6.0) * (1.0 + scaled) * decay;
    }
    block = (1.0 + scaled + scaled.square() / 3.0) * decay;
  }
}

}  // namespace hpo
