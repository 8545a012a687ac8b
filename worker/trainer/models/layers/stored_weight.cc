#include "worker/trainer/models/layers/stored_weight.h"

#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "worker/trainer/base/autocast.h"
#include "worker/trainer/models/layers/nf4.h"

namespace hpo::trainer {
namespace {

using torch::autograd::variable_list;

// Of NF4, for a thread to be worth its start.
constexpr int64_t kBlocksOfAThread = 1024;

template <typename Element>
std::span<Element> HostSpan(const torch::Tensor& tensor) {
  return {static_cast<Element*>(tensor.data_ptr()), static_cast<size_t>(tensor.numel())};
}

torch::Tensor OverValues(std::span<const float> values, at::IntArrayRef shape) {
  // from_blob takes no pointer to const; nothing is written where the caller's is const.
  return at::from_blob(const_cast<float*>(values.data()), shape, torch::kFloat32);
}

class StoredProductBackward final : public torch::autograd::Node {
 public:
  StoredProductBackward(const torch::Tensor& input, std::shared_ptr<const StoredWeight> weight,
                        bool transposed)
      : weight_(std::move(weight)), input_type_(input.scalar_type()), transposed_(transposed) {
    set_next_edges(torch::autograd::collect_next_edges(input));
  }

  void release_variables() override { weight_.reset(); }

 private:
  variable_list apply(variable_list&& gradients) override {
    const torch::NoGradGuard no_grad;
    const torch::Tensor& gradient = gradients.front();
    torch::Tensor of_input;
    {
      const torch::Tensor values = weight_->Values(gradient.scalar_type());
      of_input = at::matmul(gradient, transposed_ ? values.t() : values);
    }
    return {of_input.to(input_type_)};
  }

  std::shared_ptr<const StoredWeight> weight_;
  torch::ScalarType input_type_;
  bool transposed_;
};

// input: [rows, inputs].
torch::Tensor ProductOfRows(const torch::Tensor& input, std::shared_ptr<const StoredWeight> weight,
                            const torch::Tensor& bias, bool transposed) {
  const AutocastState autocast(input.device());
  torch::Tensor output;
  {
    const torch::NoGradGuard no_grad;
    const torch::Tensor values =
        weight->Values(autocast.enabled ? autocast.type : input.scalar_type());
    output = at::linear(input, transposed ? values.t() : values, bias);
  }
  if (!at::GradMode::is_enabled() || !input.requires_grad()) return output;
  const std::shared_ptr<StoredProductBackward> node(
      new StoredProductBackward(input, std::move(weight), transposed), torch::autograd::deleteNode);
  torch::autograd::set_history(output, node);
  return output;
}

}  // namespace

StoredWeight::StoredWeight(memory::FrozenType type, at::IntArrayRef shape, torch::Device device,
                           torch::Tensor table)
    : type_(type), shape_(shape.vec()), elements_(c10::multiply_integers(shape)) {
  const auto options = torch::TensorOptions().device(device);
  if (type == memory::FrozenType::kBFloat16) {
    half_ = at::empty(shape, options.dtype(torch::kBFloat16));
    return;
  }
  HPO_CHECK(type == memory::FrozenType::kNf4);
  const int64_t blocks = Nf4Blocks(elements_);
  codes_ = at::empty({blocks * memory::kNf4Block / 2}, options.dtype(torch::kUInt8));
  scales_ = at::empty({blocks, 1}, options.dtype(torch::kFloat32));
  table_ = std::move(table);
}

void StoredWeight::Store(std::span<const float> values) {
  HPO_CHECK(static_cast<int64_t>(values.size()) == elements_);
  const torch::NoGradGuard no_grad;
  if (type_ == memory::FrozenType::kBFloat16) {
    half_.copy_(OverValues(values, shape_));
    return;
  }
  std::vector<uint8_t> codes(static_cast<size_t>(codes_.numel()));
  std::vector<float> scales(static_cast<size_t>(scales_.numel()));
  at::parallel_for(0, std::ssize(scales), kBlocksOfAThread, [&](int64_t begin, int64_t end) {
    const auto first = static_cast<size_t>(begin);
    const auto blocks = static_cast<size_t>(end - begin);
    const std::span<const float> from_first = values.subspan(first * memory::kNf4Block);
    QuantizeNf4(
        from_first.first(std::min(blocks * memory::kNf4Block, from_first.size())),
        std::span(codes).subspan(first * memory::kNf4Block / 2, blocks * memory::kNf4Block / 2),
        std::span(scales).subspan(first, blocks));
  });
  codes_.copy_(at::from_blob(codes.data(), codes_.sizes(), torch::kUInt8));
  scales_.copy_(OverValues(scales, scales_.sizes()));
}

void StoredWeight::Load(std::span<float> values) const {
  HPO_CHECK(static_cast<int64_t>(values.size()) == elements_);
  const torch::NoGradGuard no_grad;
  if (type_ == memory::FrozenType::kBFloat16) {
    OverValues(values, shape_).copy_(half_);
    return;
  }
  DequantizeNf4(HostSpan<const uint8_t>(codes_.cpu()), HostSpan<const float>(scales_.cpu()),
                values);
}

torch::Tensor StoredWeight::Values(torch::ScalarType type) const {
  if (type_ == memory::FrozenType::kBFloat16) return half_.to(type);
  torch::Tensor values = at::index_select(table_, 0, codes_.to(torch::kInt32));
  values.view({-1, memory::kNf4Block}).mul_(scales_);
  return values.view({-1}).narrow(0, 0, elements_).view(shape_).to(type);
}

torch::Tensor Nf4Table(torch::Device device) {
  std::array<float, 512> pairs;
  for (size_t byte = 0; byte < 256; ++byte) {
    pairs[2 * byte] = kNf4Values[byte >> 4];
    pairs[2 * byte + 1] = kNf4Values[byte & 15];
  }
  torch::Tensor table =
      at::empty({256, 2}, torch::TensorOptions().device(device).dtype(torch::kFloat32));
  table.copy_(OverValues(pairs, table.sizes()));
  return table;
}

torch::Tensor StoredProduct(const torch::Tensor& input, std::shared_ptr<const StoredWeight> weight,
                            const torch::Tensor& bias, bool transposed) {
  if (input.dim() == 2) return ProductOfRows(input, std::move(weight), bias, transposed);
  std::vector<int64_t> shape = input.sizes().vec();
  shape.back() = weight->sizes()[transposed ? 1 : 0];
  const torch::Tensor rows = input.reshape({-1, input.size(-1)});
  return ProductOfRows(rows, std::move(weight), bias, transposed).view(shape);
}

}  // namespace hpo::trainer
