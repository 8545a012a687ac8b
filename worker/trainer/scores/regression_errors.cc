#include "worker/trainer/scores/regression_errors.h"

#include <cmath>

#include "common/base/status.h"
#include "worker/trainer/scores/metrics.h"

namespace hpo::trainer {

void RegressionErrors::AddRow(std::span<const float> predicted, std::span<const float> actual) {
  ++num_rows_;
  const auto rows = static_cast<double>(num_rows_);
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    const auto said = static_cast<double>(predicted[i]);
    const auto is = static_cast<double>(actual[i]);
    sum_squared_ += (said - is) * (said - is);
    sum_absolute_ += std::abs(said - is);
    const double said_before = said - column.mean_predicted;
    const double is_before = is - column.mean_actual;
    column.mean_predicted += said_before / rows;
    column.mean_actual += is_before / rows;
    column.variance_predicted += said_before * (said - column.mean_predicted);
    column.variance_actual += is_before * (is - column.mean_actual);
    column.covariance += said_before * (is - column.mean_actual);
  }
}

Metrics RegressionErrors::Summarize() const {
  HPO_CHECK(num_rows_ > 0);
  const double numbers = static_cast<double>(num_rows_) * static_cast<double>(columns_.size());
  double sum_correlations = 0.0;
  for (const Column& column : columns_) {
    sum_correlations +=
        Correlation(column.covariance, column.variance_predicted, column.variance_actual);
  }
  const double mean_squared = sum_squared_ / numbers;
  return {{"loss", mean_squared},
          {"mae", sum_absolute_ / numbers},
          {"pearson", sum_correlations / static_cast<double>(columns_.size())},
          {"rmse", std::sqrt(mean_squared)}};
}

}  // namespace hpo::trainer
