#include "sampler/numeric/cholesky_factor.h"

#include <algorithm>
#include <cmath>

#include "Eigen/Core"
#include "common/base/status.h"
#include "sampler/numeric/packet_math.h"

namespace hpo::sampler {
namespace {

using ConstRow = Eigen::Map<const Eigen::VectorXd>;
using MutableRow = Eigen::Map<Eigen::VectorXd>;

constexpr double kSmallestPivot = 1e-13;  // of the variance on the diagonal

ConstRow Head(const double* row, size_t length) {
  return ConstRow(row, static_cast<Eigen::Index>(length));
}

MutableRow Head(double* row, size_t length) {
  return MutableRow(row, static_cast<Eigen::Index>(length));
}

// The inverse of L, a lower triangle row by row: row i is (e_i - sum_k<i L_ik row_k) / L_ii.
std::vector<double> InverseOfLower(const std::vector<double>& rows, size_t size) {
  std::vector<double> inverse(rows.size(), 0.0);
  for (size_t i = 0; i < size; ++i) {
    const size_t start = i * (i + 1) / 2;
    double* row = inverse.data() + start;
    for (size_t k = 0; k < i; ++k) {
      Head(row, k + 1) -= rows[start + k] * Head(inverse.data() + k * (k + 1) / 2, k + 1);
    }
    row[i] = 1.0;
    Head(row, i + 1) *= 1.0 / rows[start + i];
  }
  return inverse;
}

}  // namespace

void CholeskyFactor::Append(std::span<const double> covariances, double variance) {
  HPO_CHECK(covariances.size() == size_);
  const size_t start = rows_.size();
  rows_.insert(rows_.end(), covariances.begin(), covariances.end());
  SolveLower({rows_.data() + start, size_});
  const double pivot = variance - Head(rows_.data() + start, size_).squaredNorm();
  rows_.push_back(std::sqrt(std::max(pivot, kSmallestPivot * variance)));
  ++size_;
}

void CholeskyFactor::Truncate(size_t size) {
  HPO_CHECK(size <= size_);
  size_ = size;
  rows_.resize(size * (size + 1) / 2);
}

void CholeskyFactor::SolveLower(std::span<double> values) const {
  for (size_t i = 0; i < values.size(); ++i) {
    const double* row = Row(i);
    values[i] = (values[i] - Head(row, i).dot(Head(values.data(), i))) / row[i];
  }
}

void CholeskyFactor::SolveUpper(std::span<double> values) const {
  for (size_t i = values.size(); i-- > 0;) {
    const double* row = Row(i);
    values[i] /= row[i];
    Head(values.data(), i) -= values[i] * Head(row, i);
  }
}

std::vector<double> CholeskyFactor::Times(std::span<const double> values) const {
  HPO_CHECK(values.size() == size_);
  std::vector<double> product;
  for (size_t i = 0; i < size_; ++i) {
    product.push_back(Head(Row(i), i + 1).dot(Head(values.data(), i + 1)));
  }
  return product;
}

double CholeskyFactor::LogDeterminant() const {
  double sum = 0.0;
  for (size_t i = 0; i < size_; ++i) sum += PortableLog(Row(i)[i]);
  return 2.0 * sum;
}

std::vector<double> CholeskyFactor::Inverse() const {
  const std::vector<double> lower = InverseOfLower(rows_, size_);
  std::vector<double> inverse(rows_.size(), 0.0);
  for (size_t k = 0; k < size_; ++k) {
    const double* row = lower.data() + k * (k + 1) / 2;
    for (size_t i = 0; i <= k; ++i) {
      Head(inverse.data() + i * (i + 1) / 2, i + 1) += row[i] * Head(row, i + 1);
    }
  }
  return inverse;
}

}  // namespace hpo::sampler
