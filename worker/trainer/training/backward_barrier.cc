#include "worker/trainer/training/backward_barrier.h"

#include <torch/csrc/autograd/engine.h>

#include <memory>
#include <utility>

namespace hpo::trainer {
namespace {

// Operations run in falling order of their number, which counts up from 0 as they are recorded.
constexpr uint64_t kLast = 0;

class Barrier final : public torch::autograd::Node {
 public:
  Barrier() : Node(kLast) {}

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { return {}; }
};

void RunBarrier(torch::Device device) {
  const torch::Tensor nothing = at::empty({0}, torch::TensorOptions().device(device));
  auto barrier = std::make_shared<Barrier>();
  barrier->add_input_metadata(nothing);
  torch::autograd::Engine::get_default_engine().execute(
      {torch::autograd::Edge(std::move(barrier), 0)}, {nothing}, /*keep_graph=*/false,
      /*create_graph=*/false, /*accumulate_grad=*/true);
}

}  // namespace

void DropFailedBackward(torch::Device device) {
  // Operations on a card wait in the card's queue, a few (such as scalars') in the caller's.
  RunBarrier(torch::kCPU);
  if (!device.is_cpu()) RunBarrier(device);
}

}  // namespace hpo::trainer
