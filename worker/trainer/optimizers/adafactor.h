// Adafactor: of a matrix's squared gradients only the means of its rows and columns are kept.
//
// With the trial's learning rate (no relative steps, no scale by the parameter's size), no first
// moment, updates clipped at a root mean square of 1, decay of the second moment 1 - t^-0.8,
// epsilon 1e-30, weight decay apart from the gradient. A tensor of more than two dimensions is
// taken as a matrix of its first dimension by the others. Source: Shazeer and Stern 2018
// (arXiv:1804.04235), algorithms 4 and 5; values and order of operations as transformers'
// Adafactor(scale_parameter=False, relative_step=False). Golden data:
// scripts/reference/optimizers.py.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/trainer/optimizers/optimizer.h"

namespace hpo::trainer {

// All parameters are float32 and contiguous, and so are their gradients, which Step overwrites.
class Adafactor final : public Optimizer {
 public:
  // Allocates 4 bytes for each row and column of a matrix, as many for each element of a vector,
  // and one scratch: see memory/trace/optimizer_states.h.
  explicit Adafactor(std::vector<ParameterGroup> groups);

  const std::vector<ParameterGroup>& groups() const override { return groups_; }
  void Step(double learning_rate) override;
  int64_t num_steps() const override { return num_steps_; }
  // "<parameter>.exp_avg_sq_row" and "<parameter>.exp_avg_sq_col", or "<parameter>.exp_avg_sq".
  std::vector<NamedTensor> State() const override;
  void SetNumSteps(int64_t num_steps) override { num_steps_ = num_steps; }

 private:
  // Second moments: of a matrix by rows and columns; of a vector `rows` alone, by element.
  struct Moments {
    torch::Tensor rows;
    torch::Tensor columns;
  };

  // Overwrites the gradient with the update before clipping: g / sqrt(second moment).
  void ScaleMatrix(const Moments& moments, const torch::Tensor& gradient);
  void ScaleVector(const Moments& moments, const torch::Tensor& gradient);
  // Means of the squared gradient's rows and columns into the scratch.
  void MeanSquares(const torch::Tensor& gradient);
  // total_ = the sum of a vector's elements.
  void Sum(const torch::Tensor& vector);
  // `sums`: one for each row of `matrix`. May overwrite total_.
  void SumRows(const torch::Tensor& matrix, torch::Tensor sums);
  // factor_ = 1 / max(1, root mean square of the update).
  void FindClipFactor(const torch::Tensor& update);

  std::vector<ParameterGroup> groups_;
  std::vector<std::vector<Moments>> moments_;  // one list for each group
  torch::Tensor squares_;                      // scratch: some rows of a matrix
  torch::Tensor row_scratch_;
  torch::Tensor column_scratch_;
  torch::Tensor column_part_;
  double new_share_ = 1.0;  // of this step's squares in the second moments
  torch::Tensor scalars_;   // the following are its elements
  torch::Tensor kept_share_;
  torch::Tensor epsilon_;
  torch::Tensor inverse_count_;
  torch::Tensor factor_;
  torch::Tensor total_;
  torch::Tensor part_;
  int64_t num_steps_ = 0;
};

}  // namespace hpo::trainer
