#include "worker/trainer/models/layers/recomputation.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "worker/trainer/base/autocast.h"
#include "worker/trainer/base/random_state.h"

namespace hpo::trainer {
namespace {

using torch::autograd::variable_list;

class RecomputedSegment final : public torch::autograd::Node {
 public:
  RecomputedSegment(Segment segment, std::vector<torch::Tensor> inputs, torch::Device device)
      : segment_(std::move(segment)), device_(device), random_state_(device), autocast_(device) {
    set_next_edges(torch::autograd::collect_next_edges(inputs));
    for (const torch::Tensor& input : inputs) {
      // Without its history: the segment's backward ends here.
      inputs_.push_back(input.detach().set_requires_grad(input.requires_grad()));
    }
  }

  void release_variables() override {
    inputs_.clear();
    segment_ = nullptr;
  }

 private:
  variable_list apply(variable_list&& gradients) override {
    std::vector<torch::Tensor> inputs = std::move(inputs_);
    RunBackward(RunAgain(inputs), gradients.front());
    variable_list of_inputs;
    for (torch::Tensor& input : inputs) of_inputs.push_back(std::move(input.mutable_grad()));
    return of_inputs;
  }

  // The gradient edge of the segment's result; the result itself is not needed.
  torch::autograd::Edge RunAgain(const std::vector<torch::Tensor>& inputs) const {
    const at::AutoGradMode record(true);
    const RandomStateKeeper now(device_);
    random_state_.Restore();
    const AutocastScope autocast(autocast_);
    return torch::autograd::impl::gradient_edge(segment_(inputs));
  }

  static void RunBackward(torch::autograd::Edge root, const torch::Tensor& gradient) {
    torch::autograd::Engine::get_default_engine().execute({std::move(root)}, {gradient},
                                                          /*keep_graph=*/false,
                                                          /*create_graph=*/false,
                                                          /*accumulate_grad=*/true);
  }

  Segment segment_;
  std::vector<torch::Tensor> inputs_;
  torch::Device device_;
  RandomState random_state_;
  AutocastState autocast_;
};

}  // namespace

torch::Tensor RunRecomputed(Segment segment, std::vector<torch::Tensor> inputs,
                            bool has_parameters) {
  const bool trains = has_parameters ||
                      std::any_of(inputs.begin(), inputs.end(),
                                  [](const torch::Tensor& input) { return input.requires_grad(); });
  if (!trains || !at::GradMode::is_enabled()) return segment(inputs);
  const torch::Device device = inputs.front().device();
  // Before the segment draws its random numbers.
  const std::shared_ptr<RecomputedSegment> node(new RecomputedSegment(segment, inputs, device),
                                                torch::autograd::deleteNode);
  torch::Tensor output;
  {
    const torch::NoGradGuard no_grad;
    output = segment(inputs);
  }
  torch::autograd::set_history(output, node);
  return output;
}

}  // namespace hpo::trainer
