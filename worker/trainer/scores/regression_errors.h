// Regression metrics from predictions row by row. Free of torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/study/trial.h"

namespace hpo::trainer {

// Of one number or several a row. Sums are kept in double as means and their deviations, so that
// large numbers cost no digits. Not thread-safe.
// Source of the update: Welford 1962, for two variables Bennett et al. 2009 (equation III.9).
class RegressionErrors {
 public:
  // num_columns >= 1.
  explicit RegressionErrors(size_t num_columns) : columns_(num_columns) {}

  // One of each for each column.
  void AddRow(std::span<const float> predicted, std::span<const float> actual);

  int64_t num_rows() const { return num_rows_; }

  // Over all rows and columns: "rmse", the root of the mean squared error; "mae", the mean absolute
  // error; "loss", the mean squared error; and "pearson", the mean over columns of the correlation,
  // a column in which either side never varies counting 0. Needs at least one row.
  Metrics Summarize() const;

 private:
  struct Column {
    double mean_predicted = 0.0;
    double mean_actual = 0.0;
    double variance_predicted = 0.0;  // sums of squared deviations
    double variance_actual = 0.0;
    double covariance = 0.0;
  };

  std::vector<Column> columns_;
  int64_t num_rows_ = 0;
  double sum_squared_ = 0.0;
  double sum_absolute_ = 0.0;
};

}  // namespace hpo::trainer
