#include "worker/trainer/models/layers/cpu_dropout.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <mutex>

#include "common/base/split_mix.h"

namespace hpo::trainer {
namespace {

constexpr int64_t kDrawnBlock = 1024;  // elements whose draws are made together
constexpr int64_t kBlocksOfThread = 16;

uint64_t DrawKey() {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get<at::CPUGeneratorImpl>()->random64();
}

struct Draws {
  uint64_t key;
  uint32_t dropped_below;

  // keep[i]: of element number block * kDrawnBlock + i.
  void Fill(int64_t block, int64_t count, bool* keep) const {
    constexpr int64_t kWords = kDrawnBlock / 2;
    std::array<uint32_t, kDrawnBlock> draws;
    uint64_t state = key + static_cast<uint64_t>(block * kWords) * kSplitMixStep;
    for (size_t i = 0; i < kDrawnBlock; i += 2) {
      const uint64_t word = SplitMix64(state += kSplitMixStep);
      draws[i] = static_cast<uint32_t>(word);
      draws[i + 1] = static_cast<uint32_t>(word >> 32);
    }
    for (int64_t i = 0; i < count; ++i) {
      keep[i] = draws[static_cast<size_t>(i)] >= dropped_below;
    }
  }
};

// output[i] = keep[i] ? scale * input[i] : 0; output may be input.
template <typename Number>
void ScaleKept(const Number* input, const bool* keep, int64_t count, float scale, Number* output) {
  using Wide = at::opmath_type<Number>;
  for (int64_t i = 0; i < count; ++i) {
    const Wide factor = keep[i] ? static_cast<Wide>(scale) : Wide{0};
    output[i] = static_cast<Number>(static_cast<Wide>(input[i]) * factor);
  }
}

// work(block, first element, elements)
template <typename Work>
void ForEachBlock(int64_t elements, const Work& work) {
  at::parallel_for(0, (elements + kDrawnBlock - 1) / kDrawnBlock, kBlocksOfThread,
                   [&](int64_t begin, int64_t end) {
                     for (int64_t block = begin; block < end; ++block) {
                       const int64_t first = block * kDrawnBlock;
                       work(block, first, std::min(kDrawnBlock, elements - first));
                     }
                   });
}

// `input`, or where its elements are not one behind the other a copy of it in `output`.
torch::Tensor InOrder(const torch::Tensor& input, torch::Tensor& output) {
  return input.is_contiguous() ? input : output.copy_(input);
}

class Dropping : public torch::autograd::Function<Dropping> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context,
                               const torch::Tensor& input, double probability) {
    const torch::Tensor mask = at::empty(input.sizes(), input.options().dtype(at::kBool));
    torch::Tensor output = at::empty(input.sizes(), input.options());
    const Draws draws{.key = DrawKey(),
                      .dropped_below = static_cast<uint32_t>(std::ldexp(probability, 32))};
    const auto scale = static_cast<float>(1.0 / (1.0 - probability));
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, input.scalar_type(), "hpo::CpuDropout", [&] {
          const scalar_t* const from = InOrder(input, output).const_data_ptr<scalar_t>();
          scalar_t* const to = output.mutable_data_ptr<scalar_t>();
          bool* const keep = mask.mutable_data_ptr<bool>();
          ForEachBlock(input.numel(), [&](int64_t block, int64_t first, int64_t count) {
            draws.Fill(block, count, keep + first);
            ScaleKept(from + first, keep + first, count, scale, to + first);
          });
        });
    context->save_for_backward({mask});
    context->saved_data["scale"] = static_cast<double>(scale);
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const torch::Tensor mask = context->get_saved_variables().front();
    const torch::Tensor& gradient = gradients.front();
    const auto scale = static_cast<float>(context->saved_data["scale"].toDouble());
    torch::Tensor of_input = at::empty(gradient.sizes(), gradient.options());
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, gradient.scalar_type(), "hpo::CpuDropout", [&] {
          const scalar_t* const from = InOrder(gradient, of_input).const_data_ptr<scalar_t>();
          scalar_t* const to = of_input.mutable_data_ptr<scalar_t>();
          const bool* const keep = mask.const_data_ptr<bool>();
          ForEachBlock(gradient.numel(), [&](int64_t, int64_t first, int64_t count) {
            ScaleKept(from + first, keep + first, count, scale, to + first);
          });
        });
    return {of_input, torch::Tensor()};
  }
};

}  // namespace

torch::Tensor CpuDropout(const torch::Tensor& input, double probability) {
  return Dropping::apply(input, probability);
}

}  // namespace hpo::trainer
