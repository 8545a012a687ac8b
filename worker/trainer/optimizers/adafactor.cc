// Tested by tests/worker/trainer/techniques_test.cc.
#include "worker/trainer/optimizers/adafactor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status.h"
#include "memory/trace/optimizer_states.h"

namespace hpo::trainer {
namespace {

constexpr double kEpsilon = 1e-30;
constexpr double kDecayExponent = -0.8;
// Elements that are summed up at once: below what torch's kernels sum in two passes, for which
// they allocate.

// [rows, columns] of a matrix; [n, 1] of a vector.
torch::Tensor AsMatrix(const torch::Tensor& tensor) { return tensor.view({tensor.size(0), -1}); }

memory::ParameterExtent ExtentOf(const torch::Tensor& parameter) {
  return {.rows = parameter.size(0), .columns = parameter.numel() / parameter.size(0)};
}

}  // namespace

Adafactor::Adafactor(std::vector<ParameterGroup> groups)
    : groups_(std::move(groups)), moments_(groups_.size()) {
  const torch::NoGradGuard no_grad;
  std::vector<memory::ParameterExtent> extents;
  torch::TensorOptions float32;
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (const torch::Tensor& parameter : groups_[i].parameters) {
      const memory::ParameterExtent extent = ExtentOf(parameter);
      extents.push_back(extent);
      float32 = torch::TensorOptions(torch::kFloat32).device(parameter.device());
      Moments moments{.rows = at::zeros({extent.rows}, float32), .columns = {}};
      if (extent.columns > 1) moments.columns = at::zeros({extent.columns}, float32);
      moments_[i].push_back(std::move(moments));
    }
  }
  HPO_CHECK(!extents.empty());
  const memory::AdafactorScratch scratch = memory::AdafactorScratchOf(extents);
  squares_ = at::empty({scratch.squares}, float32);
  row_scratch_ = at::empty({scratch.rows}, float32);
  column_scratch_ = at::empty({scratch.columns}, float32);
  column_part_ = at::empty({scratch.columns}, float32);
  scalars_ = at::empty({memory::AdafactorScratch::kScalars}, float32);
  int64_t next = 0;
  for (torch::Tensor* scalar :
       {&kept_share_, &epsilon_, &inverse_count_, &factor_, &total_, &part_}) {
    *scalar = scalars_.select(0, next++);
  }
  epsilon_.fill_(kEpsilon);
}

void Adafactor::Step(double learning_rate) {
  const torch::NoGradGuard no_grad;
  new_share_ = std::pow(static_cast<double>(++num_steps_), kDecayExponent);
  kept_share_.fill_(1.0 - new_share_);
  for (size_t i = 0; i < groups_.size(); ++i) {
    const double decay = groups_[i].weight_decay;
    for (size_t k = 0; k < groups_[i].parameters.size(); ++k) {
      torch::Tensor parameter = groups_[i].parameters[k];
      torch::Tensor gradient = parameter.grad();
      HPO_CHECK(gradient.defined());
      const Moments& moments = moments_[i][k];
      moments.columns.defined() ? ScaleMatrix(moments, AsMatrix(gradient))
                                : ScaleVector(moments, gradient.view(-1));
      FindClipFactor(AsMatrix(gradient));
      if (decay != 0.0) parameter.add_(parameter, -decay * learning_rate);
      parameter.addcmul_(gradient, factor_, -learning_rate);
    }
  }
}

void Adafactor::ScaleMatrix(const Moments& moments, const torch::Tensor& gradient) {
  MeanSquares(gradient);
  torch::Tensor rows = row_scratch_.narrow(0, 0, gradient.size(0));
  torch::Tensor columns = column_scratch_.narrow(0, 0, gradient.size(1));
  moments.rows.mul_(kept_share_).add_(rows, new_share_);
  moments.columns.mul_(kept_share_).add_(columns, new_share_);
  // Row factor 1 / sqrt(row / mean of rows), column factor 1 / sqrt(column).
  Sum(moments.rows);
  inverse_count_.fill_(1.0 / static_cast<double>(gradient.size(0)));
  total_.mul_(inverse_count_);
  at::div_out(rows, moments.rows, total_).rsqrt_();
  at::rsqrt_out(columns, moments.columns);
  torch::Tensor update = gradient;
  update.mul_(rows.unsqueeze(1)).mul_(columns);
}

void Adafactor::ScaleVector(const Moments& moments, const torch::Tensor& gradient) {
  torch::Tensor squares = squares_.narrow(0, 0, gradient.numel());
  at::mul_out(squares, gradient, gradient).add_(epsilon_);
  moments.rows.mul_(kept_share_).add_(squares, new_share_);
  at::rsqrt_out(squares, moments.rows);
  torch::Tensor update = gradient;
  update.mul_(squares);
}

void Adafactor::MeanSquares(const torch::Tensor& gradient) {
  const int64_t rows = gradient.size(0);
  const int64_t columns = gradient.size(1);
  const int64_t at_once = memory::AdafactorScratch::RowsAtOnce(columns);
  torch::Tensor row_means = row_scratch_.narrow(0, 0, rows);
  torch::Tensor column_means = column_scratch_.narrow(0, 0, columns);
  torch::Tensor column_part = column_part_.narrow(0, 0, columns);
  column_means.zero_();
  for (int64_t first = 0; first < rows; first += at_once) {
    const int64_t count = std::min(at_once, rows - first);
    torch::Tensor squares = squares_.narrow(0, 0, count * columns).view({count, columns});
    const torch::Tensor piece = gradient.narrow(0, first, count);
    at::mul_out(squares, piece, piece).add_(epsilon_);
    SumRows(squares, row_means.narrow(0, first, count));
    at::sum_out(column_part, squares, /*dim=*/{0});
    column_means.add_(column_part);
  }
  inverse_count_.fill_(1.0 / static_cast<double>(columns));
  row_means.mul_(inverse_count_);
  inverse_count_.fill_(1.0 / static_cast<double>(rows));
  column_means.mul_(inverse_count_);
}

void Adafactor::Sum(const torch::Tensor& vector) {
  total_.zero_();
  for (int64_t first = 0; first < vector.numel(); first += memory::AdafactorScratch::kMostSummed) {
    const int64_t count = std::min(memory::AdafactorScratch::kMostSummed, vector.numel() - first);
    at::sum_out(part_, vector.narrow(0, first, count), /*dim=*/{0});
    total_.add_(part_);
  }
}

void Adafactor::SumRows(const torch::Tensor& matrix, torch::Tensor sums) {
  if (matrix.size(0) > 1) {
    at::sum_out(sums, matrix, /*dim=*/{1});
    return;
  }
  Sum(matrix.view(-1));
  sums.copy_(total_);
}

void Adafactor::FindClipFactor(const torch::Tensor& update) {
  const int64_t rows = update.size(0);
  const int64_t columns = update.size(1);
  const int64_t at_once = memory::AdafactorScratch::RowsAtOnce(columns);
  torch::Tensor row_sums = row_scratch_.narrow(0, 0, rows);
  for (int64_t first = 0; first < rows; first += at_once) {
    const int64_t count = std::min(at_once, rows - first);
    torch::Tensor squares = squares_.narrow(0, 0, count * columns).view({count, columns});
    const torch::Tensor piece = update.narrow(0, first, count);
    at::mul_out(squares, piece, piece);
    SumRows(squares, row_sums.narrow(0, first, count));
  }
  Sum(row_sums);
  inverse_count_.fill_(1.0 / static_cast<double>(update.numel()));
  total_.mul_(inverse_count_);
  at::sqrt_out(factor_, total_).clamp_min_(1.0).reciprocal_();
}

std::vector<NamedTensor> Adafactor::State() const {
  std::vector<NamedTensor> state;
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (size_t k = 0; k < moments_[i].size(); ++k) {
      const std::string& name = groups_[i].names[k];
      const Moments& moments = moments_[i][k];
      const bool factored = moments.columns.defined();
      state.emplace_back(name + (factored ? ".exp_avg_sq_row" : ".exp_avg_sq"), moments.rows);
      if (factored) state.emplace_back(name + ".exp_avg_sq_col", moments.columns);
    }
  }
  return state;
}

}  // namespace hpo::trainer
