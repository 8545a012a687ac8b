#include "common/memory/families/bert_timeline.h"

#include "gtest/gtest.h"
#include "tests/common/memory/tiny_input.h"

namespace hpo {
namespace {

using Level = AllocationTimeline::Level;

// Every tensor counts rounded up to 64 bytes. n = 1 row, s = 16 tokens, E = 8, F = 16, 2 heads,
// V = 10, 32 positions, 2 types, 1 layer, 2 labels. So hidden 512, intermediate 1024, statistics
// 64, mask 128, scores 2048, score mask 512, log-sum-exp 384, batch tensors 128.
PassShape TinyShape(double dropout) {
  PassShape shape;
  shape.model = TinyInput().model;
  shape.model.hidden_dropout = dropout;
  shape.model.attention_dropout = dropout;
  shape.num_labels = 2;
  shape.rows = 1;
  shape.tokens = 16;
  return shape;
}

KernelTraits CpuWithThreads(int64_t threads) {
  KernelTraits traits = KernelTraits::Cpu();
  traits.threads_with_buffers = threads;
  return traits;
}

// With 4 heads (scores 4096, score mask 1024) the peak is where the attention's backward has made
// the gradient of the dropped probabilities:
//   batch            3 x 128, attention bias and positions 2 x 64           =   512
//   embeddings       sum, output 2 x 512, statistics 2 x 64, mask 128       =  1280
//   head and loss    8 x 64 of width 8, 8 x 64 of 2 labels                  =  1024
//   saved            query, key, value 3 x 512, mask 1024, probabilities
//                    and dropped ones 2 x 4096                              = 10752
//   gradients        of the residual, context and value 3 x 512, dropped
//                    probabilities 4096                                     =  5632
// Parameters that have their gradient by then: pooler 320, second LayerNorm 128, the two dense
// layers of the intermediate 2 x 576, first LayerNorm 128, the attention's output 320.
TEST(TrainingPass, WithDropoutPeaksInTheAttentionsBackward) {
  PassShape shape = TinyShape(0.1);
  shape.model.num_heads = 4;
  const AllocationTimeline time = TrainingPass(shape, CpuWithThreads(1), false);
  EXPECT_EQ(time.peak(), (Level{.other = 512 + 1280 + 1024 + 10752 + 5632,
                                .gradients = 320 + 128 + 2 * 576 + 128 + 320}));
}

// Without dropout and with one thread's buffers (4 x 32 x (2 x 16 + 1) = 4224 in the
// attention's backward):
//   batch 512; embeddings 2 x 512 + 2 x 64 = 1152; head and loss 1024
//   saved            query, key, value, context 4 x 512, log-sum-exp 384    =  2432
//   gradients        of the residual, context, query, key and value 5 x 512 =  2560
TEST(TrainingPass, WithoutDropoutPeaksInTheFusedAttentionsBackward) {
  const AllocationTimeline time = TrainingPass(TinyShape(0.0), CpuWithThreads(1), false);
  EXPECT_EQ(time.peak(), (Level{.other = 512 + 1152 + 1024 + 2432 + 2560 + 4224,
                                .gradients = 320 + 128 + 2 * 576 + 128 + 320}));
}

TEST(TrainingPass, EndsWithEveryEncoderGradientOrNone) {
  for (const double dropout : {0.0, 0.1}) {
    const PassShape shape = TinyShape(dropout);
    for (const KernelTraits& traits : {KernelTraits::Cpu(), KernelTraits::Cuda()}) {
      EXPECT_EQ(TrainingPass(shape, traits, false).now().gradients,
                EncoderParameterBytes(shape.model, traits));
      EXPECT_EQ(TrainingPass(shape, traits, true).now().gradients, 0);
    }
  }
}

// What is kept for backward is freed by it: what is left does not depend on the number of layers.
TEST(TrainingPass, BackwardFreesWhatForwardKept) {
  for (const double hidden_dropout : {0.0, 0.1}) {
    for (const double attention_dropout : {0.0, 0.1}) {
      for (const KernelTraits& traits : {KernelTraits::Cpu(), KernelTraits::Cuda()}) {
        PassShape shape = TinyShape(hidden_dropout);
        shape.model.attention_dropout = attention_dropout;
        const int64_t left = TrainingPass(shape, traits, true).now().other;
        // The batch, bias and positions, the head's vectors.
        const int64_t granularity = traits.granularity;
        EXPECT_EQ(left, granularity == 64 ? 512 + 1024 : 5 * 512 + 16 * 512);
        shape.model.num_layers = 5;
        EXPECT_EQ(TrainingPass(shape, traits, true).now().other, left);
      }
    }
  }
}

// Batch 512, hidden state, attended, dense, sum and LayerNorm 5 x 512, intermediate 2 x 1024,
// statistics 2 x 64; or, with the buffers of 8 threads (4 x 32 x (16 + 2 + 4) each), the attention.
TEST(EvaluationPass, PeaksInTheIntermediateOrInTheThreadsBuffers) {
  EXPECT_EQ(EvaluationPass(TinyShape(0.1), CpuWithThreads(0)).peak().other,
            512 + 5 * 512 + 2 * 1024 + 128);
  EXPECT_EQ(EvaluationPass(TinyShape(0.1), CpuWithThreads(8)).peak().other,
            512 + 5 * 512 + 384 + 8 * 4 * 32 * 22);
}

TEST(EvaluationPass, DoesNotGrowWithLayersAndEndsWithTheBatchAlone) {
  PassShape shape = TinyShape(0.1);
  shape.model.num_layers = 1;
  const AllocationTimeline one = EvaluationPass(shape, KernelTraits::Cpu());
  shape.model.num_layers = 9;
  const AllocationTimeline nine = EvaluationPass(shape, KernelTraits::Cpu());
  EXPECT_EQ(one.peak(), nine.peak());
  EXPECT_EQ(one.now(), nine.now());
  EXPECT_EQ(one.now().other, 512 + 512) << "the batch and the last hidden state";
}

TEST(HeadParameterBytes, CountsWeightAndBiasOfEveryLayer) {
  PassShape shape = TinyShape(0.1);
  EXPECT_EQ(HeadParameterBytes(shape, KernelTraits::Cpu()), 64 + 64);
  shape.head_sizes = {32, 16};
  EXPECT_EQ(HeadParameterBytes(shape, KernelTraits::Cpu()),
            (4 * 8 * 32 + 128) + (4 * 32 * 16 + 64) + (4 * 16 * 2 + 64));
}

}  // namespace
}  // namespace hpo
