// Classification metrics from confusion counts. Free of torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/study/trial.h"

namespace hpo::trainer {

// Correlation from sums of deviations' products; 0 where one side never varies.
double Correlation(double covariance, double variance_a, double variance_b);

// Counts predictions row by row, then says accuracy, macro_f1, micro_f1 and mcc. Not thread-safe.
//
// Single label: accuracy = micro_f1 = share of rows right; macro_f1 is the mean of F1 over every
// label that occurs or is predicted, a label never predicted right counting 0 (scikit-learn's
// f1_score with zero_division = 0).
// Multi label: accuracy = share of rows with exactly the right set; micro_f1 over all decisions;
// macro_f1 the mean over every label of the task.
// mcc: Matthews' correlation of what is said with what is, for several classes as R_K (Gorodkin
// 2004); with several labels a row of all their decisions. 0 where either never varies.
class ClassificationCounts {
 public:
  ClassificationCounts(int64_t num_labels, bool multi_label);

  // Labels in [0, num_labels).
  void AddRow(int64_t predicted, int64_t actual);
  // One flag for each label. Sizes are num_labels.
  void AddRow(std::span<const uint8_t> predicted, std::span<const uint8_t> actual);

  int64_t num_rows() const { return num_rows_; }

  // "accuracy", "macro_f1", "mcc", "micro_f1". Needs at least one row.
  Metrics Summarize() const;

 private:
  struct LabelCounts {
    int64_t true_positives = 0;
    int64_t false_positives = 0;
    int64_t false_negatives = 0;
  };

  double DecisionCorrelation(const LabelCounts& total) const;
  double ClassCorrelation() const;

  std::vector<LabelCounts> labels_;
  bool multi_label_;
  int64_t num_rows_ = 0;
  int64_t num_right_ = 0;
};

}  // namespace hpo::trainer
