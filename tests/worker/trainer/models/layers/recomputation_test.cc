#include "worker/trainer/models/layers/recomputation.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/trainer/failing_allocations.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/base/autocast.h"
#include "worker/trainer/memory/oom_guard.h"
#include "worker/trainer/models/layers/layers.h"
#include "worker/trainer/training/backward_barrier.h"

namespace hpo::trainer {
namespace {

constexpr int64_t kInputWidth = 32;
constexpr int64_t kInputRows = 64;
constexpr int64_t kLayers = 6;

// Dense layers with dropout between them, run one by one or in recomputed segments.
class Chain {
 public:
  Chain() {
    at::Generator generator = at::globalContext().defaultGenerator(torch::kCPU);
    generator.set_current_seed(3);
    const torch::NoGradGuard no_grad;
    for (int64_t i = 0; i < kLayers; ++i) {
      layers_.push_back(Linear(kInputWidth, kInputWidth, torch::kCPU));
      layers_.back()->weight.normal_(0.0, 0.3);
      layers_.back()->bias.normal_(0.0, 0.3);
    }
    input_ = at::randn({kInputRows, kInputWidth});
  }

  void RequireInputGradient() { input_.requires_grad_(); }
  void Freeze(int64_t layers) {
    for (int64_t i = 0; i < layers; ++i) {
      layers_[static_cast<size_t>(i)]->weight.requires_grad_(false);
      layers_[static_cast<size_t>(i)]->bias.requires_grad_(false);
    }
  }

  // Dropout drawn from seed 7. every: layers of a segment; 0: none is recomputed.
  torch::Tensor Loss(int64_t every) {
    at::Generator generator = at::globalContext().defaultGenerator(torch::kCPU);
    generator.set_current_seed(7);
    torch::Tensor hidden = input_;
    for (int64_t first = 0; first < kLayers;) {
      const int64_t count = std::min(std::max<int64_t>(every, 1), kLayers - first);
      const auto segment = [this, first, count](const std::vector<torch::Tensor>& inputs) {
        return Run(first, count, inputs.front());
      };
      hidden = every == 0 ? segment({hidden})
                          : RunRecomputed(segment, {hidden}, HasTrained(first, count));
      first += count;
    }
    return hidden.to(torch::kFloat32).square().sum();
  }

  // Of every parameter and the input; undefined where there is none.
  std::vector<torch::Tensor> TakeGradients() {
    std::vector<torch::Tensor> gradients = {input_.grad().defined() ? input_.grad()
                                                                    : torch::Tensor()};
    input_.mutable_grad().reset();
    for (Linear& layer : layers_) {
      for (torch::Tensor* parameter : {&layer->weight, &layer->bias}) {
        gradients.push_back(parameter->grad());
        parameter->mutable_grad().reset();
      }
    }
    return gradients;
  }

 private:
  torch::Tensor Run(int64_t first, int64_t count, torch::Tensor hidden) {
    for (int64_t i = first; i < first + count; ++i) {
      hidden = Dropout(at::gelu(layers_[static_cast<size_t>(i)](hidden)), 0.3, /*training=*/true);
    }
    return hidden;
  }

  bool HasTrained(int64_t first, int64_t count) const {
    bool trained = false;
    for (int64_t i = first; i < first + count; ++i) {
      trained = trained || layers_[static_cast<size_t>(i)]->weight.requires_grad();
    }
    return trained;
  }

  std::vector<Linear> layers_;
  torch::Tensor input_;
};

void ExpectSame(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined()) << i;
    if (a[i].defined()) {
      EXPECT_TRUE(at::equal(a[i], b[i])) << i;
    }
  }
}

// Bit for bit, whatever of the chain is trained.
TEST(Recomputation, GradientsAreThoseWithoutIt) {
  for (const bool input_gradient : {false, true}) {
    for (const int64_t frozen : {0, 2, 6}) {
      if (!input_gradient && frozen == kLayers) continue;  // nothing to back-propagate
      Chain chain;
      if (input_gradient) chain.RequireInputGradient();
      chain.Freeze(frozen);
      const torch::Tensor expected_loss = chain.Loss(0);
      expected_loss.backward();
      const auto expected = chain.TakeGradients();
      for (const int64_t every : {1, 2, 4, 6}) {
        SCOPED_TRACE(testing::Message() << input_gradient << " " << frozen << " " << every);
        const torch::Tensor loss = chain.Loss(every);
        EXPECT_TRUE(at::equal(loss, expected_loss));
        loss.backward();
        ExpectSame(chain.TakeGradients(), expected);
      }
    }
  }
}

// A second backward adds to the gradients, as parts of a batch do.
TEST(Recomputation, GradientsOfPartsAddUp) {
  Chain chain;
  for (int part = 0; part < 2; ++part) chain.Loss(0).backward();
  const auto expected = chain.TakeGradients();
  for (int part = 0; part < 2; ++part) chain.Loss(2).backward();
  ExpectSame(chain.TakeGradients(), expected);
}

// The random numbers after forward and backward are those that an ordinary pass would have left.
TEST(Recomputation, LeavesTheRandomStateAsForwardDid) {
  Chain chain;
  chain.Loss(0).backward();
  const torch::Tensor expected = at::rand({8});
  chain.Loss(3).backward();
  EXPECT_TRUE(at::equal(at::rand({8}), expected));
}

TEST(Recomputation, KeepsOnlyTheSegmentsInputs) {
  DeviceMemory& memory = *TestDevice().memory;
  Chain chain;
  const Bytes before = memory.Read().live;
  const Bytes hidden{4 * kInputRows * kInputWidth};
  std::vector<Bytes> held;
  for (const int64_t every : {1, 2, 6}) {
    const torch::Tensor loss = chain.Loss(every);
    held.push_back(memory.Read().live - before);
  }
  // The first segment's input is the chain's; the last output is kept by the loss.
  EXPECT_LE(held[0], 6 * hidden + KiB(1));
  EXPECT_LE(held[1], 3 * hidden + KiB(1));
  EXPECT_LE(held[2], hidden + KiB(1));
  EXPECT_EQ(memory.Read().live, before) << "a graph that is let go frees what it kept";
}

TEST(Recomputation, WithoutGradientsNothingIsKept) {
  DeviceMemory& memory = *TestDevice().memory;
  Chain chain;
  const torch::NoGradGuard no_grad;
  const Bytes before = memory.Read().live;
  const torch::Tensor loss = chain.Loss(2);
  EXPECT_FALSE(loss.requires_grad());
  EXPECT_LE(memory.Read().live - before, KiB(1));
}

TEST(Recomputation, AutocastIsAsItWasInForward) {
  Chain chain;
  const AutocastState bfloat16(torch::kCPU, torch::kBFloat16);
  const auto gradients = [&](int64_t every) {
    torch::Tensor loss;
    {
      const AutocastScope scope(bfloat16);
      loss = chain.Loss(every);
    }
    loss.backward();
    return chain.TakeGradients();
  };
  const auto expected = gradients(0);
  ExpectSame(gradients(2), expected);
  chain.Loss(0).backward();
  EXPECT_FALSE(at::equal(chain.TakeGradients()[1], expected[1])) << "autocast rounds";
}

// Any allocation of forward or backward may be refused; then nothing stays, and a redo is the same.
TEST(Recomputation, RunsOutOfMemoryCleanly) {
  DeviceMemory& memory = *TestDevice().memory;
  Chain chain;
  chain.Loss(2).backward();
  const auto expected = chain.TakeGradients();
  const Bytes baseline = memory.Read().live;
  FailingAllocations faults;
  int64_t refused = 0;
  while (true) {
    faults.FailAt(refused + 1);
    const BatchAttempt attempt = TryBatch(
        memory, baseline, [&] { chain.Loss(2).backward(); },
        [&] {
          DropFailedBackward(torch::kCPU);
          chain.TakeGradients();
        });
    faults.FailAt(0);
    if (!attempt.fault.has_value()) break;
    ++refused;
    ASSERT_TRUE(attempt.clean) << refused;
    chain.Loss(2).backward();
    ExpectSame(chain.TakeGradients(), expected);
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace hpo::trainer
