#include "memory/trace/step_tracer.h"

#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "memory/ops/attention_ops.h"
#include "memory/ops/layer_ops.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {
namespace {

// "+4 -4": sizes of what is allocated and freed.
std::string Events(const AllocationTrace& trace, size_t from = 0) {
  std::string text;
  for (size_t i = from; i < trace.events.size(); ++i) {
    if (!text.empty()) text += ' ';
    text += (trace.events[i].allocates ? "+" : "-") + std::to_string(trace.events[i].bytes);
  }
  return text;
}

// Every block is allocated once, and freed at most once, after that.
void CheckWellFormed(const AllocationTrace& trace) {
  std::vector<int> state(static_cast<size_t>(trace.num_blocks), 0);
  for (const TraceEvent& event : trace.events) {
    int& s = state[static_cast<size_t>(event.block)];
    ASSERT_EQ(s, event.allocates ? 0 : 1);
    ++s;
    ASSERT_GT(event.bytes, 0);
  }
}

TracedGradients One(TracedStorage gradient) {
  TracedGradients gradients;
  gradients.push_back(std::move(gradient));
  return gradients;
}

TEST(StepTracer, FreesWithTheLastHolder) {
  StepTracer tracer;
  {
    TracedStorage a = tracer.Allocate(100);
    const TracedStorage b = a;
    a.Reset();
    EXPECT_EQ(Events(tracer.trace()), "+100");
    EXPECT_TRUE(b.IsUnique());
    tracer.Touch(7);
  }
  EXPECT_EQ(Events(tracer.trace()), "+100 +7 -7 -100");
}

TEST(StepTracer, TensorsWithoutElementsAreNoEvents) {
  StepTracer tracer;
  tracer.Allocate(0);
  EXPECT_EQ(Events(tracer.trace()), "");
}

TEST(StepTracer, SavedTensorsLiveUntilTheirNodeHasRun) {
  StepTracer tracer;
  const TracedParameter weight = tracer.AddParameter({.elements = 1});
  TracedTensor output;
  {
    const TracedTensor saved = tracer.NewTensor(10);
    output = tracer.NewTensor(5);
    output.edge = tracer.Record({weight.Edge()}, {saved.storage}, [&](auto&, const auto& kept) {
      EXPECT_EQ(kept[0].bytes(), 40);
      return One(tracer.Allocate(4));
    });
  }
  EXPECT_EQ(Events(tracer.trace()), "+4 +40 +20");
  const size_t before = tracer.trace().events.size();
  tracer.Backward(std::move(output));
  // Root's gradient, the output, the weight's gradient (kept), what was saved; the root's gradient
  // is the caller's until the end.
  EXPECT_EQ(Events(tracer.trace(), before), "+4 -20 +4 -40 -4");
  EXPECT_TRUE(tracer.gradients().Has(weight));
  tracer.gradients().Clear(weight);
  EXPECT_FALSE(tracer.gradients().Has(weight));
  CheckWellFormed(tracer.trace());
}

TEST(StepTracer, SecondGradientOfAParameterIsAddedInPlace) {
  StepTracer tracer;
  const TracedParameter weight = tracer.AddParameter({.elements = 25});
  for (int i = 0; i < 2; ++i) {
    TracedTensor loss = tracer.NewTensor(1);
    loss.edge = tracer.Record({weight.Edge()}, {},
                              [&](auto&, const auto&) { return One(tracer.Allocate(100)); });
    tracer.Backward(std::move(loss));
  }
  EXPECT_EQ(Events(tracer.trace()), "+100 +4 +4 -4 +100 -4 +4 +4 -4 +100 -100 -4");
}

// A tied head: the sum of both uses is complete before it meets what an earlier part left.
TEST(StepTracer, GradientsOfAllUsesMeetBeforeTheyAreAddedToTheParameters) {
  StepTracer tracer;
  const TracedParameter weight = tracer.AddParameter({.elements = 25});
  const auto run = [&] {
    TracedTensor x;
    for (int use = 0; use < 2; ++use) {
      x.edge = tracer.Record({weight.Edge(), x.edge}, {}, [&](auto&, const auto&) {
        TracedGradients gradients(2);
        gradients[0] = tracer.Allocate(100);
        gradients[1] = tracer.Allocate(8);
        return gradients;
      });
    }
    const size_t from = tracer.trace().events.size();
    x.elements = 1;
    tracer.Backward(x);
    return Events(tracer.trace(), from);
  };
  EXPECT_EQ(run(), "+4 +100 +8 +100 +8 -8 -8 -100 -4");
  // The last gradient, that nobody wants, goes before the one that it came from, which is the -8
  // after it. The first use's gradient waits for the second's together with the one that exists.
  EXPECT_EQ(run(), "+4 +100 +8 +100 +8 -8 -8 -100 -100 -4");
  tracer.gradients().Clear(weight);
  EXPECT_EQ(run(), "+4 +100 +8 +100 +8 -8 -8 -100 -4");
}

TEST(StepTracer, SumsIntoANewTensorWhereTheFirstIsAView) {
  StepTracer tracer;
  const TracedParameter weight = tracer.AddParameter({.elements = 25});
  const GradientEdge edge = tracer.Record({weight.Edge(), weight.Edge()}, {}, [&](auto&, auto&) {
    TracedGradients gradients(2);
    gradients[0] = tracer.Allocate(100).AsView();
    gradients[1] = tracer.Allocate(100);
    return gradients;
  });
  const size_t from = tracer.trace().events.size();
  tracer.Backward({.elements = 1, .edge = edge});
  EXPECT_EQ(Events(tracer.trace(), from), "+4 +100 +100 +100 -100 -100 -4");
}

// An expanded gradient: repeated over what it is a gradient of.
TEST(StepTracer, ASumIsAsLargeAsTheLargerOfBoth) {
  StepTracer tracer;
  const TracedParameter weight = tracer.AddParameter({.elements = 25});
  const GradientEdge edge = tracer.Record({weight.Edge(), weight.Edge()}, {}, [&](auto&, auto&) {
    TracedGradients gradients(2);
    gradients[0] = tracer.Allocate(16).AsView();
    gradients[1] = tracer.Allocate(100);
    return gradients;
  });
  const size_t from = tracer.trace().events.size();
  tracer.Backward({.elements = 1, .edge = edge});
  EXPECT_EQ(Events(tracer.trace(), from), "+4 +16 +100 +100 -16 -100 -4");
}

// A piece that is computed again leaves its gradients, whoever else uses the parameter.
TEST(StepTracer, AnInnerBackwardWaitsForNoUseOutsideOfIt) {
  for (const bool inner : {false, true}) {
    StepTracer tracer;
    const TracedParameter weight = tracer.AddParameter({.elements = 25});
    const auto whole = [&](auto&, const auto&) { return One(tracer.Allocate(100)); };
    const GradientEdge outside = tracer.Record({weight.Edge()}, {}, whole);
    const GradientEdge root = tracer.Record({outside}, {}, [&](auto&, const auto&) {
      std::optional<ParameterGradients::InnerBackward> scope;
      if (inner) scope.emplace(tracer.gradients());
      const int32_t first = tracer.NextNode();
      const StepTracer::GradMode recording(tracer, true);
      const GradientEdge again = tracer.Record({weight.Edge()}, {}, whole);
      tracer.BackwardFrom(first, again, tracer.Allocate(4));
      EXPECT_EQ(tracer.gradients().Has(weight), inner);
      return One(tracer.Allocate(8));
    });
    tracer.Backward({.elements = 1, .edge = root});
    EXPECT_TRUE(tracer.gradients().Has(weight));
    CheckWellFormed(tracer.trace());
  }
}

TEST(StepTracer, AGradientThatOthersHoldIsCopiedIntoTheParameter) {
  StepTracer tracer;
  const TracedParameter a = tracer.AddParameter({.elements = 1});
  const TracedParameter b = tracer.AddParameter({.elements = 1});
  TracedTensor loss = tracer.NewTensor(1);
  loss.edge = tracer.Record({a.Edge(), b.Edge()}, {}, [&](auto& incoming, const auto&) {
    TracedGradients gradients(2);
    gradients[0] = incoming[0];
    gradients[1] = incoming[0];
    return gradients;
  });
  const size_t before = tracer.trace().events.size();
  tracer.Backward(std::move(loss));
  // Both copy: the root's gradient is the caller's.
  EXPECT_EQ(Events(tracer.trace(), before), "+4 -4 +4 +4 -4");
}

TEST(StepTracer, WithoutRecordingNothingIsKept) {
  StepTracer tracer;
  TracedDevice device(tracer, KernelTraits::Cuda());
  const TracedLinear layer = ops::MakeLinear(device, 8, 8);
  const size_t before = tracer.trace().events.size();
  {
    const StepTracer::GradMode no_grad(tracer, false);
    const TracedTensor input = tracer.NewTensor(16);
    const TracedTensor output =
        ops::Activate(device, ops::Linear(device, input, layer), Activation::kGelu);
    EXPECT_FALSE(output.edge.IsWanted());
  }
  EXPECT_EQ(Events(tracer.trace(), before), "+64 +64 +64 -64 -64 -64");
  EXPECT_EQ(tracer.NextNode(), 0);
}

TEST(TracedOperations, LinearKeepsItsInputAndMakesGradientsInOrder) {
  StepTracer tracer;
  TracedDevice device(tracer, KernelTraits::Cuda());
  const TracedLinear first = ops::MakeLinear(device, 4, 3);   // 48 and 12 bytes
  const TracedLinear second = ops::MakeLinear(device, 3, 2);  // 24 and 8 bytes
  const size_t before = tracer.trace().events.size();
  TracedTensor output;
  {
    const TracedTensor input = tracer.NewTensor(5 * 4);  // 80 bytes
    output = ops::Linear(device, ops::Linear(device, input, first), second);
  }
  EXPECT_EQ(Events(tracer.trace(), before), "+80 +60 +40");
  const size_t backward = tracer.trace().events.size();
  tracer.Backward(std::move(output));
  // Input's gradient, weight's, bias'; then the incoming one and the saved input. The root's
  // gradient goes last.
  EXPECT_EQ(Events(tracer.trace(), backward), "+4 -40 +60 +24 +8 -60 +48 +12 -60 -80 -4");
  CheckWellFormed(tracer.trace());
}

TEST(TracedOperations, AFrozenWeightKeepsNoInput) {
  StepTracer tracer;
  TracedDevice device(tracer, KernelTraits::Cuda());
  const TracedLinear trained = ops::MakeLinear(device, 4, 4);
  device.SetParameterType(2, /*trainable=*/false);
  const TracedLinear frozen = ops::MakeLinear(device, 4, 4);
  EXPECT_EQ(frozen.weight.bytes(), 32);
  TracedTensor input = tracer.NewTensor(16);
  TracedTensor hidden = ops::Linear(device, input, trained);
  input = {};
  const TracedTensor output = ops::Linear(device, hidden, frozen);
  const size_t before = tracer.trace().events.size();
  hidden = {};
  EXPECT_EQ(Events(tracer.trace(), before), "-64");
}

TEST(TracedOperations, AutocastCastsEachProductsWeightAndNormsBack) {
  StepTracer tracer;
  TracedDevice device(tracer, KernelTraits::Cuda());
  const TracedLinear layer = ops::MakeLinear(device, 4, 4, /*bias=*/false);
  const TracedNorm norm{.weight = device.Parameter(4), .bias = device.Parameter(4), .width = 4};
  const size_t before = tracer.trace().events.size();
  device.EnterAutocast();
  TracedTensor hidden = tracer.NewTensor(8);
  hidden = ops::Linear(device, hidden, layer);  // cast weight 32, input 16, output 16
  hidden = ops::Linear(device, hidden, layer);  // the same but for the input, which is cast
  EXPECT_EQ(hidden.element_size, 2);
  EXPECT_EQ(Events(tracer.trace(), before), "+32 +32 +16 +16 -32 -32 +32 +16");
  const size_t at_norm = tracer.trace().events.size();
  hidden = ops::LayerNorm(device, hidden, norm);  // cast 32, output 32, two statistics of two rows
  EXPECT_EQ(hidden.element_size, 4);
  EXPECT_EQ(Events(tracer.trace(), at_norm), "+32 +32 +8 +8 -16");
  device.LeaveAutocast();
  tracer.Backward(std::move(hidden));
  CheckWellFormed(tracer.trace());
  EXPECT_TRUE(tracer.gradients().Has(layer.weight));
}

TEST(TracedOperations, DropoutOfNothingIsNothing) {
  StepTracer tracer;
  TracedDevice device(tracer, KernelTraits::Cuda());
  const TracedTensor input = tracer.NewTensor(8);
  const size_t before = tracer.trace().events.size();
  ops::Dropout(device, input, 0.0);
  EXPECT_EQ(tracer.trace().events.size(), before);
  ops::Dropout(device, input, 0.5);
  EXPECT_EQ(Events(tracer.trace(), before), "+8 +32 -8 -32");
}

TEST(TracedOperations, OnlyWrittenOutAttentionGrowsWithTheSquareOfTheLength) {
  const auto kept = [](AttentionKernel kernel, int64_t tokens) {
    StepTracer tracer;
    KernelTraits traits = KernelTraits::Cuda();
    const AttentionPair pair{.plain = kernel, .masked = kernel};
    traits.attention = {.float32 = pair, .float16 = pair, .bfloat16 = pair};
    TracedDevice device(tracer, traits);
    const TracedParameter weight = device.Parameter(1);
    const AttentionShape shape{.batch = 1, .tokens = tokens, .heads = 2, .head_size = 8};
    TracedTensor input = tracer.NewTensor(shape.HiddenElements());
    input.edge = weight.Edge();
    const TracedTensor output = ops::Attention(device, input, input, input, shape);
    return FindLivePeak(tracer.trace(), Bytes{1}).peak.count;
  };
  for (const AttentionKernel kernel : {AttentionKernel::kEfficient, AttentionKernel::kFlash}) {
    EXPECT_LT(kept(kernel, 512), 9 * kept(kernel, 64));
  }
  EXPECT_GT(kept(AttentionKernel::kMath, 512), 30 * kept(AttentionKernel::kMath, 64));
}

}  // namespace
}  // namespace hpo::memory
