#include "worker/trainer/scores/metrics.h"

#include <cmath>

#include "common/base/status.h"

namespace hpo::trainer {
namespace {

// 2 TP / (2 TP + FP + FN); 0 where nothing occurs and nothing is predicted.
double F1(int64_t true_positives, int64_t false_positives, int64_t false_negatives) {
  const int64_t denominator = 2 * true_positives + false_positives + false_negatives;
  if (denominator == 0) return 0.0;
  return 2.0 * static_cast<double>(true_positives) / static_cast<double>(denominator);
}

}  // namespace

double Correlation(double covariance, double variance_a, double variance_b) {
  const double product = variance_a * variance_b;
  return product > 0.0 ? covariance / std::sqrt(product) : 0.0;
}

ClassificationCounts::ClassificationCounts(int64_t num_labels, bool multi_label)
    : labels_(static_cast<size_t>(num_labels)), multi_label_(multi_label) {}

void ClassificationCounts::AddRow(int64_t predicted, int64_t actual) {
  ++num_rows_;
  if (predicted == actual) {
    ++num_right_;
    ++labels_[static_cast<size_t>(actual)].true_positives;
    return;
  }
  ++labels_[static_cast<size_t>(predicted)].false_positives;
  ++labels_[static_cast<size_t>(actual)].false_negatives;
}

void ClassificationCounts::AddRow(std::span<const uint8_t> predicted,
                                  std::span<const uint8_t> actual) {
  ++num_rows_;
  bool right = true;
  for (size_t i = 0; i < labels_.size(); ++i) {
    const bool said = predicted[i] != 0;
    const bool is = actual[i] != 0;
    if (said && is) ++labels_[i].true_positives;
    if (said && !is) ++labels_[i].false_positives;
    if (!said && is) ++labels_[i].false_negatives;
    right = right && said == is;
  }
  if (right) ++num_right_;
}

Metrics ClassificationCounts::Summarize() const {
  HPO_CHECK(num_rows_ > 0);
  double sum_f1 = 0.0;
  int64_t num_labels = 0;
  LabelCounts total;
  for (const LabelCounts& label : labels_) {
    total.true_positives += label.true_positives;
    total.false_positives += label.false_positives;
    total.false_negatives += label.false_negatives;
    const bool seen = label.true_positives + label.false_positives + label.false_negatives > 0;
    if (!seen && !multi_label_) continue;
    sum_f1 += F1(label.true_positives, label.false_positives, label.false_negatives);
    ++num_labels;
  }
  return {{"accuracy", static_cast<double>(num_right_) / static_cast<double>(num_rows_)},
          {"macro_f1", sum_f1 / static_cast<double>(num_labels)},
          {"mcc", multi_label_ ? DecisionCorrelation(total) : ClassCorrelation()},
          {"micro_f1", F1(total.true_positives, total.false_positives, total.false_negatives)}};
}

// Every decision is a pair of 0 and 1.
double ClassificationCounts::DecisionCorrelation(const LabelCounts& total) const {
  const auto said = static_cast<double>(total.true_positives + total.false_positives);
  const auto is = static_cast<double>(total.true_positives + total.false_negatives);
  const auto all = static_cast<double>(num_rows_) * static_cast<double>(labels_.size());
  return Correlation(all * static_cast<double>(total.true_positives) - said * is,
                     said * (all - said), is * (all - is));
}

double ClassificationCounts::ClassCorrelation() const {
  const auto rows = static_cast<double>(num_rows_);
  double covariance = rows * static_cast<double>(num_right_);
  double said_variance = rows * rows;
  double is_variance = rows * rows;
  for (const LabelCounts& label : labels_) {
    const auto said = static_cast<double>(label.true_positives + label.false_positives);
    const auto is = static_cast<double>(label.true_positives + label.false_negatives);
    covariance -= said * is;
    said_variance -= said * said;
    is_variance -= is * is;
  }
  return Correlation(covariance, said_variance, is_variance);
}

}  // namespace hpo::trainer
