#include "worker/trainer/data/batch_tensors.h"

#include <vector>

namespace hpo::trainer {
namespace {

template <typename T>
torch::Tensor CopyToDevice(const std::vector<T>& values, at::IntArrayRef shape,
                           torch::Device device) {
  // from_blob never writes, but takes no pointer to const.
  auto* const data = const_cast<T*>(values.data());
  const torch::Tensor host =
      at::from_blob(data, shape, torch::TensorOptions(c10::CppTypeToScalarType<T>::value));
  if (device.is_cpu()) {
    return host.to(device, host.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  }
  // From pinned pages, which torch keeps until the copy is made: nobody waits for it.
  return host.pin_memory().to(device, host.scalar_type(), /*non_blocking=*/true);
}

}  // namespace

torch::Tensor ToDevice(const std::vector<float>& values, torch::Device device) {
  return CopyToDevice(values, {static_cast<int64_t>(values.size())}, device);
}

DeviceBatch ToDevice(const text::TokenBatch& batch, int64_t num_labels, torch::Device device) {
  const bool is_packed = !batch.packed.empty();
  const std::vector<int64_t> shape = {is_packed ? 1 : batch.rows, batch.length};
  DeviceBatch tensors;
  tensors.input.ids = CopyToDevice(batch.ids, shape, device);
  if (is_packed) {
    tensors.input.packed = {
        .rows = batch.packed,
        .positions = CopyToDevice(batch.positions, shape, device),
        .offsets = CopyToDevice(batch.offsets, {batch.rows + 1}, device),
    };
  } else {
    tensors.input.mask = CopyToDevice(batch.mask, shape, device);
  }
  tensors.input.type_ids = CopyToDevice(batch.type_ids, shape, device);
  tensors.labels =
      batch.label_matrix.empty()
          ? CopyToDevice(batch.labels, {static_cast<int64_t>(batch.labels.size())}, device)
          : CopyToDevice(batch.label_matrix, {batch.rows, num_labels}, device);
  return tensors;
}

ClassLossOptions ToDevice(const LabelLoss& loss, torch::Device device) {
  ClassLossOptions options{.weights = {}, .smoothing = loss.smoothing};
  if (!loss.weights.empty()) options.weights = ToDevice(loss.weights, device);
  return options;
}

torch::Tensor SumOfRowLosses(const torch::Tensor& logits, const torch::Tensor& labels,
                             const ClassLossOptions& options) {
  if (labels.dim() == 1) {
    return at::cross_entropy_loss(logits, labels, options.weights, at::Reduction::Sum,
                                  /*ignore_index=*/-100, options.smoothing);
  }
  const torch::Tensor sum = at::binary_cross_entropy_with_logits(
      logits, labels, /*weight=*/{}, /*pos_weight=*/options.weights, at::Reduction::Sum);
  return sum / static_cast<double>(labels.size(1));
}

}  // namespace hpo::trainer
