// The Matern 5/2 kernel with a length scale per axis over mixed points. A share of the variance may
// be that of a sum of functions of one axis each, which one trial tells of for all values of the
// other axes.
//
//   m(q) = (1 + sqrt(5 q) + 5/3 q) exp(-sqrt(5 q)),   q_a = weight_a * min(1, (x_a - x'_a)^2)
//   k(x, x') = scale * ((1 - share) * m(sum over d axes of q_a) + share / d * sum of m(d * q_a))
//
// A function of one axis has a length shorter by sqrt(d) than one of all axes: distances of random
// points in m are the same.
// Numeric axes lie in [0, 1], so that the minimum does nothing there; categories are whole numbers,
// for which it is 0 or 1 (Hamming). Both are squared distances in a Euclidean space (one-hot for
// categories), so the kernel is positive semi-definite.
// Sources: Rasmussen & Williams 2006, section 4.2.1; the sum: Duvenaud et al. 2011
// (arXiv:1112.4394), of the first order alone. Pure; safe from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hpo::sampler {

struct KernelParameters {
  std::vector<double> weights;  // per axis, 1 / length scale^2
  double scale = 1.0;           // variance of the process
  double noise = 1e-4;          // variance of an observation around the process
  double additive = 0.0;        // share of the scale that is a sum over the axes; below 1
  bool operator==(const KernelParameters&) const = default;
};

// Points stored axis by axis.
class PointTable {
 public:
  explicit PointTable(size_t num_axes) : columns_(num_axes) {}

  size_t size() const { return size_; }
  size_t num_axes() const { return columns_.size(); }
  const std::vector<double>& column(size_t axis) const { return columns_[axis]; }
  void Append(std::span<const double> point);
  void Truncate(size_t size);
  std::vector<double> Point(size_t index) const;
  bool operator==(const PointTable&) const = default;

 private:
  std::vector<std::vector<double>> columns_;
  size_t size_ = 0;
};

// Derivatives of the covariances with some points. What lies behind their number is undefined.
struct CovarianceSlopes {
  // By q_a: of each axis where there is a sum, else of all axes alike.
  std::vector<std::vector<double>> by_square;
  std::vector<double> by_additive;  // by the share; empty where there is no sum

  const std::vector<double>& BySquare(size_t axis) const {
    return by_square[by_square.size() == 1 ? 0 : axis];
  }
};

// k(x, p) for the first `count` points p of the table, into the front of `values`, which has room
// for PaddedSize(count); what lies behind `count` is undefined. `slopes` may be null.
void Covariances(const KernelParameters& kernel, const PointTable& points,
                 std::span<const double> x, size_t count, std::vector<double>& values,
                 CovarianceSlopes* slopes = nullptr);

}  // namespace hpo::sampler
