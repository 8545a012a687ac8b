#include "memory/learned/nonnegative_least_squares.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace hpo::memory {
namespace {

// Of a column's own squared length, what must be left apart from the others.
constexpr double kIndependent = 1e-9;
// Of the right-hand side's length, what a column must be able to explain to be taken in.
constexpr double kWorthwhile = 1e-10;

double Dot(std::span<const double> x, std::span<const double> y) {
  double sum = 0.0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// Cholesky factor of the Gram matrix of some columns, lower triangular by rows; grows by a column.
class GramFactor {
 public:
  // False, and nothing changed, where the column depends on those before it.
  bool Append(const Columns& a, std::span<const size_t> before, size_t column) {
    std::vector<double> row(before.size() + 1);
    const double length = Dot(a[column], a[column]);
    double rest = length;
    for (size_t i = 0; i < before.size(); ++i) {
      double value = Dot(a[before[i]], a[column]);
      for (size_t k = 0; k < i; ++k) value -= rows_[i][k] * row[k];
      row[i] = value / rows_[i][i];
      rest -= row[i] * row[i];
    }
    if (!(rest > kIndependent * length)) return false;
    row.back() = std::sqrt(rest);
    rows_.push_back(std::move(row));
    return true;
  }

  std::vector<double> Solve(std::vector<double> right) const {
    const size_t n = rows_.size();
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < i; ++k) right[i] -= rows_[i][k] * right[k];
      right[i] /= rows_[i][i];
    }
    for (size_t i = n; i-- > 0;) {
      for (size_t k = i + 1; k < n; ++k) right[i] -= rows_[k][i] * right[k];
      right[i] /= rows_[i][i];
    }
    return right;
  }

 private:
  std::vector<std::vector<double>> rows_;
};

// The columns with positive coefficients so far, and the solution over them.
class PassiveSet {
 public:
  PassiveSet(const Columns& a, std::span<const double> b) : a_(a), b_(b) {}

  bool Contains(size_t column) const {
    return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
  }

  // Takes the column in and moves towards the least-squares solution over the set, dropping those
  // that would turn negative on the way. False where the column depends on the others, or gets no
  // part of its own.
  bool TakeIn(size_t column) {
    if (!factor_.Append(a_, columns_, column)) return false;
    columns_.push_back(column);
    x_.push_back(0.0);
    for (;;) {
      const std::vector<double> target = SolveOverSet();
      const std::optional<double> share = ShareUntilZero(target);
      if (!share) {
        x_ = target;
        return true;
      }
      for (size_t i = 0; i < x_.size(); ++i) x_[i] += *share * (target[i] - x_[i]);
      if (!DropZeros(target)) return false;
      if (!Contains(column)) return false;
    }
  }

  std::vector<double> Residual() const {
    std::vector<double> residual(b_.begin(), b_.end());
    for (size_t j = 0; j < columns_.size(); ++j) {
      for (size_t i = 0; i < residual.size(); ++i) residual[i] -= x_[j] * a_[columns_[j]][i];
    }
    return residual;
  }

  NonNegativeFit Result() const {
    std::vector<size_t> order(columns_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [this](size_t i, size_t j) { return columns_[i] < columns_[j]; });
    NonNegativeFit fit;
    for (const size_t i : order) {
      fit.columns.push_back(columns_[i]);
      fit.coefficients.push_back(x_[i]);
      std::vector<double> unit(columns_.size(), 0.0);
      unit[i] = 1.0;
      const std::vector<double> column = factor_.Solve(std::move(unit));
      for (const size_t j : order) fit.inverse.push_back(column[j]);
    }
    return fit;
  }

 private:
  std::vector<double> SolveOverSet() const {
    std::vector<double> right;
    right.reserve(columns_.size());
    for (const size_t column : columns_) right.push_back(Dot(a_[column], b_));
    return factor_.Solve(std::move(right));
  }

  // How far towards `target` the first coefficient reaches zero; nullopt: none does.
  std::optional<double> ShareUntilZero(const std::vector<double>& target) const {
    std::optional<double> share;
    for (size_t i = 0; i < x_.size(); ++i) {
      if (target[i] > 0.0) continue;
      const double reached = x_[i] > 0.0 ? x_[i] / (x_[i] - target[i]) : 0.0;
      share = std::min(share.value_or(1.0), reached);
    }
    return share;
  }

  // Drops what has reached zero on its way to a target that is not positive. False where nothing
  // has, which rounding alone could do.
  bool DropZeros(const std::vector<double>& target) {
    const double largest = *std::max_element(x_.begin(), x_.end());
    std::vector<size_t> kept;
    std::vector<double> kept_x;
    for (size_t i = 0; i < x_.size(); ++i) {
      if (target[i] <= 0.0 && x_[i] <= 1e-14 * largest) continue;
      kept.push_back(columns_[i]);
      kept_x.push_back(x_[i]);
    }
    if (kept.size() == columns_.size()) return false;
    factor_ = GramFactor();
    columns_.clear();
    x_ = std::move(kept_x);
    for (const size_t column : kept) {
      // Part of an independent set is independent.
      factor_.Append(a_, columns_, column);
      columns_.push_back(column);
    }
    return true;
  }

  const Columns& a_;
  std::span<const double> b_;
  GramFactor factor_;
  std::vector<size_t> columns_;
  std::vector<double> x_;
};

// The column outside the set and not barred that would lower the residual most for its length.
std::optional<size_t> BestColumn(const Columns& a, const PassiveSet& set,
                                 const std::vector<bool>& barred,
                                 const std::vector<double>& residual, double worthwhile) {
  std::optional<size_t> best;
  double best_gain = worthwhile;
  for (size_t j = 0; j < a.size(); ++j) {
    if (barred[j] || set.Contains(j)) continue;
    const double length = std::sqrt(Dot(a[j], a[j]));
    if (!(length > 0.0)) continue;
    const double gain = Dot(a[j], residual) / length;
    if (gain > best_gain) {
      best = j;
      best_gain = gain;
    }
  }
  return best;
}

}  // namespace

double NonNegativeFit::Predict(std::span<const double> row) const {
  double sum = 0.0;
  for (size_t i = 0; i < columns.size(); ++i) sum += coefficients[i] * row[i];
  return sum;
}

double NonNegativeFit::Leverage(std::span<const double> row) const {
  const size_t n = columns.size();
  double sum = 0.0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) sum += row[i] * inverse[i * n + j] * row[j];
  }
  return sum;
}

NonNegativeFit FitNonNegative(const Columns& a, std::span<const double> b) {
  PassiveSet set(a, b);
  std::vector<bool> barred(a.size(), false);
  const double worthwhile = kWorthwhile * std::sqrt(Dot(b, b));
  // Every step lowers the residual, so that no set comes twice; the bound is against rounding.
  const size_t max_steps = 3 * a.size() + 10;
  for (size_t step = 0; step < max_steps; ++step) {
    const std::vector<double> residual = set.Residual();
    const std::optional<size_t> column = BestColumn(a, set, barred, residual, worthwhile);
    if (!column) break;
    if (set.TakeIn(*column)) {
      barred.assign(a.size(), false);
    } else {
      barred[*column] = true;
    }
  }
  return set.Result();
}

}  // namespace hpo::memory
