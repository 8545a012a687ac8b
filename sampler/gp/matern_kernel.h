// The Matern 5/2 kernel with a length scale per axis over mixed points.
//
//   k(x, x') = scale * (1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r),
//   r^2 = sum over axes of weight_a * min(1, (x_a - x'_a)^2)
//
// Numeric axes lie in [0, 1], so that the minimum does nothing there; categories are whole numbers,
// for which it is 0 or 1 (Hamming). Both are squared distances in a Euclidean space (one-hot for
// categories), so the kernel is positive semi-definite.
// Source: Rasmussen & Williams 2006, section 4.2.1. Pure; safe from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hpo {

struct KernelParameters {
  std::vector<double> weights;  // per axis, 1 / length scale^2
  double scale = 1.0;           // variance of the process
  double noise = 1e-4;          // variance of an observation around the process
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

// k(x, p) for the first `count` points p of the table, into the front of `values`; with `slopes`
// also dk / d(r^2). Both have room for PaddedSize(count); what lies behind `count` is undefined.
void Covariances(const KernelParameters& kernel, const PointTable& points,
                 std::span<const double> x, size_t count, std::vector<double>& values,
                 std::vector<double>* slopes = nullptr);

}  // namespace hpo
