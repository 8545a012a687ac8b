#include "memory/need/memory_estimate.h"

#include <functional>
#include <string>
#include <vector>

#include "common/study/model_catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "memory/plan/memory_plan.h"
#include "tests/memory/tiny_input.h"

namespace hpo::memory {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kSmallTensors = KiB(64);  // labels, norms, scalars: counted in one sum

MemoryEstimate Estimate(const EstimateInput& input, const MemoryPlan& plan) {
  const auto estimate = EstimateMemory(input, plan);
  EXPECT_TRUE(estimate.ok()) << estimate.status();
  return estimate.value_or(MemoryEstimate{});
}

Bytes SumOfClasses(const MemoryEstimate& estimate) {
  return estimate.weights + estimate.gradients + estimate.optimizer + estimate.activations +
         estimate.head;
}

// Every tensor counts rounded up to 64 bytes on a CPU. n = 1 row, s = 16 tokens, E = 8, F = 16,
// 2 heads, V = 10, 32 positions, 2 types, 1 layer, 2 labels.
//   embeddings   320 + 1024 + 64, LayerNorm 2 x 64                        = 1536
//   layer        4 x (256 + 64) + (512 + 64) + (512 + 64), norms 4 x 64   = 2688
//   pooler       256 + 64                                                 =  320
TEST(EstimateMemory, CountsTheTinyModelsParametersAsByHand) {
  EstimateInput input = TinyInput();
  input.device.threads = 1;  // more buffers would put the peak where there are no gradients
  const MemoryEstimate estimate = Estimate(input, PlanOf(1, 1));
  EXPECT_EQ(estimate.weights, Bytes{4544});
  EXPECT_EQ(estimate.optimizer, Bytes{2 * 4544});
  EXPECT_EQ(estimate.head, Bytes{4 * (64 + 64)});
}

TEST(EstimateMemory, ClassesAddUpToTheLivePeak) {
  for (const int64_t micro_batch : {1, 16}) {
    const MemoryEstimate estimate = Estimate(BertBaseInput(), PlanOf(16, micro_batch));
    EXPECT_EQ(estimate.live_peak, SumOfClasses(estimate));
    EXPECT_EQ(estimate.peak_phase, "training");
  }
}

TEST(EstimateMemory, LaterPartsMeetAllGradients) {
  const MemoryEstimate one = Estimate(BertBaseInput(), PlanOf(8, 8));
  const MemoryEstimate two = Estimate(BertBaseInput(), PlanOf(16, 8));
  EXPECT_LT(one.gradients, one.weights);
  EXPECT_GE(two.gradients, two.weights);  // and one on its way into a sum
  EXPECT_GT(two.live_peak, one.live_peak);
}

// Without dropout nothing of tokens x tokens is kept, whatever the length.
TEST(EstimateMemory, WithoutAttentionDropoutNoScoresAreKept) {
  EstimateInput input = BertBaseInput();
  input.model.attention_dropout = 0.0;
  input.config.max_length = 256;
  const MemoryEstimate shorter = Estimate(input, PlanOf(16, 16));
  input.config.max_length = 512;
  const MemoryEstimate longer = Estimate(input, PlanOf(16, 16));
  EXPECT_LT(longer.activations.count, 2.02 * shorter.activations.count);
  input.model.attention_dropout = 0.1;
  // Probabilities, their mask and dropped probabilities: of the 12 layers, 11 keep all of them
  // while the last one is at its peak.
  const Bytes scores{11 * 9 * int64_t{16} * 12 * 512 * 512};
  EXPECT_GT(Estimate(input, PlanOf(16, 16)).activations, longer.activations + scores);
}

TEST(EstimateMemory, BertBaseHasItsPublishedParameters) {
  const MemoryEstimate estimate = Estimate(BertBaseInput(), PlanOf(16, 1));
  EXPECT_EQ(estimate.weights, Bytes{4 * int64_t{109'482'240}});
  EXPECT_EQ(estimate.optimizer, Bytes{8 * int64_t{109'482'240}});
  EXPECT_GE(estimate.gradients, Bytes{4 * int64_t{109'482'240}});
  EXPECT_EQ(estimate.head, Bytes{16 * int64_t{768} * 2 + 4 * 64});
}

TEST(EstimateMemory, HiddenLayersOfTheHeadCount) {
  EstimateInput input = BertBaseInput();
  input.config.head_layers = 2;
  input.config.head_sizes[0] = 512;
  input.config.head_sizes[1] = 256;
  input.config.head_sizes[2] = 4096;  // not used: head.layers is 2
  const int64_t parameters = 768 * 512 + 512 + 512 * 256 + 256 + 256 * 2;
  EXPECT_EQ(Estimate(input, PlanOf(16, 1)).head, Bytes{16 * parameters + 4 * 64});
}

// Whatever grows, the estimate does not shrink. One part and several parts are two families.
TEST(EstimateMemory, GrowsWithEveryDimension) {
  using Change = std::function<void(EstimateInput&, MemoryPlan&)>;
  const std::pair<const char*, Change> changes[] = {
      {"micro-batch", [](EstimateInput&, MemoryPlan& plan) { ++plan.micro_batch; }},
      {"length", [](EstimateInput& input, MemoryPlan&) { input.config.max_length += 16; }},
      {"layers", [](EstimateInput& input, MemoryPlan&) { ++input.model.num_layers; }},
      {"intermediate",
       [](EstimateInput& input, MemoryPlan&) { input.model.intermediate_size += 8; }},
      {"vocabulary", [](EstimateInput& input, MemoryPlan&) { input.model.vocab_size += 100; }},
      {"labels", [](EstimateInput& input, MemoryPlan&) { input.workload.num_labels += 20; }},
  };
  for (const double dropout : {0.0, 0.1}) {
    for (const char* kind : {"cpu", "cuda"}) {
      for (const auto& [name, change] : changes) {
        SCOPED_TRACE(::testing::Message() << name << " " << kind << " dropout " << dropout);
        EstimateInput input = TinyInput();
        input.model.max_positions = 4096;
        input.model.attention_dropout = dropout;
        input.model.hidden_dropout = dropout;
        input.device.kind = kind;
        MemoryPlan plan = PlanOf(1000, 1);
        Bytes before = Estimate(input, plan).needed_limit;
        for (int step = 0; step < 40; ++step) {
          change(input, plan);
          const Bytes after = Estimate(input, plan).needed_limit;
          EXPECT_GE(after, before);
          before = after;
        }
      }
    }
  }
}

TEST(EstimateMemory, OnlyTheLongestRowCountsRoundedUpTo16) {
  EstimateInput input = BertBaseInput();
  input.workload.train_lengths = {{12, 500}, {100, 3}};
  input.workload.validation_lengths = {{12, 40}};
  const MemoryEstimate by_data = Estimate(input, PlanOf(16, 16));
  input.workload = {.num_labels = 2, .train_lengths = {}, .validation_lengths = {}};
  input.config.max_length = 112;
  EXPECT_EQ(Estimate(input, PlanOf(16, 16)), by_data);
}

TEST(EstimateMemory, PaddingStopsAtTheModelsPositions) {
  EstimateInput input = BertBaseInput();
  input.config.max_length = 512;
  const MemoryEstimate all = Estimate(input, PlanOf(16, 16));
  input.config.max_length = 4096;
  EXPECT_EQ(Estimate(input, PlanOf(16, 16)), all);
  input.model.max_positions = 500;  // padded to 500, not to 512
  EXPECT_LT(Estimate(input, PlanOf(16, 16)).activations, all.activations);
}

TEST(EstimateMemory, NoBatchHasMoreRowsThanTheData) {
  EstimateInput input = BertBaseInput();
  input.workload.train_lengths = {{512, 5}};
  input.workload.validation_lengths = {{512, 4}};
  input.config.eval_batch_multiplier = 1000;
  EXPECT_EQ(Estimate(input, PlanOf(64, 64)), Estimate(input, PlanOf(5, 5)));
  EXPECT_EQ(Estimate(input, PlanOf(64, 5)), Estimate(input, PlanOf(5, 5))) << "one part, not 13";
  // Later parts meet the gradients of those before them; the largest part decides.
  EXPECT_GE(Estimate(input, PlanOf(64, 2)).gradients, Estimate(input, PlanOf(64, 2)).weights);
  EXPECT_LT(Estimate(input, PlanOf(64, 4)).gradients, Estimate(input, PlanOf(64, 4)).weights);
}

TEST(EstimateMemory, TheConfigurationsDropoutBeatsTheModels) {
  EstimateInput input = BertBaseInput();
  input.config.dropout = 0.0;
  const MemoryEstimate configured = Estimate(input, PlanOf(16, 16));
  input.config.dropout.reset();
  EXPECT_GT(Estimate(input, PlanOf(16, 16)).activations, configured.activations);
  input.model.hidden_dropout = 0.0;
  input.model.attention_dropout = 0.0;
  EXPECT_EQ(Estimate(input, PlanOf(16, 16)), configured);
}

TEST(EstimateMemory, AnEvaluationOfManyRowsCanBeThePeak) {
  EstimateInput input = BertBaseInput();
  const MemoryEstimate training = Estimate(input, PlanOf(16, 1));
  EXPECT_EQ(training.peak_phase, "training");
  input.config.eval_batch_multiplier = 64;
  const MemoryEstimate evaluation = Estimate(input, PlanOf(16, 1));
  EXPECT_EQ(evaluation.peak_phase, "evaluation");
  EXPECT_EQ(evaluation.gradients, Bytes{});
  // Four tensors of 64 x 512 x 768 floats and two of 64 x 512 x 3072 at the least.
  EXPECT_GT(evaluation.activations, Bytes{4 * int64_t{64} * 512 * (4 * 768 + 2 * 3072)});
}

TEST(EstimateMemory, OnACpuTheLiveBytesAreTheLimit) {
  const MemoryEstimate estimate = Estimate(BertBaseInput(), PlanOf(16, 16));
  EXPECT_EQ(estimate.reserved_peak, estimate.live_peak);
  EXPECT_EQ(estimate.needed_limit, estimate.live_peak);
  EXPECT_EQ(estimate.base, Bytes{});
  EXPECT_EQ(estimate.workspaces, Bytes{});
}

TEST(EstimateMemory, OnACardAddsAllocatorWorkspacesAndBase) {
  EstimateInput input = BertBaseInput();
  input.device.kind = "cuda";
  input.device.base = MiB(500);
  input.device.workspace = MiB(64);
  const MemoryEstimate estimate = Estimate(input, PlanOf(16, 16));
  EXPECT_EQ(estimate.live_peak, SumOfClasses(estimate));
  EXPECT_EQ(estimate.base, MiB(500));
  EXPECT_EQ(estimate.workspaces, MiB(64));
  EXPECT_GT(estimate.reserved_peak, estimate.live_peak + MiB(64));
  EXPECT_LT(estimate.needed_limit - MiB(500), estimate.reserved_peak);
  EXPECT_GT(estimate.needed_limit, estimate.live_peak + MiB(564));
}

// Korthikanti et al. in float32 and with one-byte masks: 8 hidden, 2 intermediate (F = 4 E), 2
// masks of a layer are 66 bytes per row, token and width; the statistics and log-sum-exp are small
// change.
TEST(EstimateMemory, ACardKeepsThePublishedBytesPerLayer) {
  EstimateInput input = BertBaseInput();
  input.device.kind = "cuda";
  const MemoryEstimate twelve = Estimate(input, PlanOf(64, 16));
  input.model.num_layers = 24;
  const MemoryEstimate more = Estimate(input, PlanOf(64, 16));
  const double per_element =
      static_cast<double>((more.activations - twelve.activations).count) / (12.0 * 16 * 512 * 768);
  EXPECT_GT(per_element, 66.0);
  EXPECT_LT(per_element, 66.2);
}

// Of what is frozen neither gradients nor states are kept.
TEST(EstimateMemory, CountsOnlyWhatIsTrained) {
  EstimateInput input = BertBaseInput();
  input.config.batch_size = 2;
  input.config.max_length = 64;
  const MemoryPlan plan = PlanOf(2, 2);
  const auto all = EstimateMemory(input, plan);
  ASSERT_TRUE(all.ok()) << all.status();
  input.config.freezing = {.embeddings = true, .layers = 6};
  const auto upper_half = EstimateMemory(input, plan);
  ASSERT_TRUE(upper_half.ok()) << upper_half.status();
  EXPECT_EQ(upper_half->weights, all->weights);
  const int64_t frozen = 4 * (23'837'184 + 6 * 7'087'872);
  // A trace counts AdamW's number of steps too.
  EXPECT_EQ(all->optimizer - upper_half->optimizer, Bytes{2 * frozen - 64});
  EXPECT_LE(upper_half->gradients, all->weights - Bytes{frozen});
  EXPECT_LT(upper_half->live_peak, all->live_peak - Bytes{2 * frozen});

  input.config.freezing = {};
  input.config.lora = LoraOptions{.rank = 8, .targets = {"query", "value"}};
  const auto adapters = EstimateMemory(input, plan);
  ASSERT_TRUE(adapters.ok()) << adapters.status();
  const int64_t trained = 4 * 12 * 2 * 8 * (768 + 768);
  EXPECT_EQ(adapters->weights, all->weights + Bytes{trained});
  EXPECT_EQ(adapters->optimizer.count / 1000, 2 * trained / 1000);
  EXPECT_LE(adapters->gradients, Bytes{trained});
  // Seven of eight bytes of the linear layers' weights go, half of the embeddings'.
  input.config.lora->base = FrozenType::kNf4;
  const auto packed = EstimateMemory(input, plan);
  ASSERT_TRUE(packed.ok()) << packed.status();
  const int64_t linear = 12 * (4 * 768 * 768 + 2 * 768 * 3072) + 768 * 768;
  const int64_t table = 256 * 2 * 4;
  EXPECT_EQ(adapters->weights - packed->weights, Bytes{4 * linear - (linear / 2 + linear / 64 * 4) +
                                                       2 * (30522 + 512 + 2) * 768 - table});
  input.config.lora->targets = {"c_attn"};
  EXPECT_EQ(EstimateMemory(input, plan).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(EstimateMemory, NamesTheBadSize) {
  using Change = std::function<void(EstimateInput&, MemoryPlan&, int64_t)>;
  const std::pair<const char*, Change> fields[] = {
      {"vocab_size", [](auto& in, auto&, int64_t v) { in.model.vocab_size = v; }},
      {"hidden_size", [](auto& in, auto&, int64_t v) { in.model.hidden_size = v; }},
      {"num_layers", [](auto& in, auto&, int64_t v) { in.model.num_layers = v; }},
      {"num_heads", [](auto& in, auto&, int64_t v) { in.model.num_heads = v; }},
      {"intermediate_size", [](auto& in, auto&, int64_t v) { in.model.intermediate_size = v; }},
      {"max_positions", [](auto& in, auto&, int64_t v) { in.model.max_positions = v; }},
      // Some models have no token types: 0 is not wrong.
      {"type_vocab_size",
       [](auto& in, auto&, int64_t v) { in.model.type_vocab_size = v == 0 ? -1 : v; }},
      {"train.batch_size", [](auto& in, auto&, int64_t v) { in.config.batch_size = v; }},
      {"train.grad_accum", [](auto& in, auto&, int64_t v) { in.config.grad_accum = v; }},
      {"tok.max_length", [](auto& in, auto&, int64_t v) { in.config.max_length = v; }},
      {"train.eval_batch_multiplier",
       [](auto& in, auto&, int64_t v) { in.config.eval_batch_multiplier = v; }},
      {"labels", [](auto& in, auto&, int64_t v) { in.workload.num_labels = v; }},
      {"plan.micro_batch", [](auto&, auto& plan, int64_t v) { plan.micro_batch = v; }},
  };
  for (const auto& [name, change] : fields) {
    for (const int64_t value : {int64_t{0}, int64_t{-3}, int64_t{1} << 40, INT64_MAX, INT64_MIN}) {
      SCOPED_TRACE(::testing::Message() << name << " = " << value);
      EstimateInput input = TinyInput();
      MemoryPlan plan = PlanOf(1, 1);
      change(input, plan, value);
      const absl::Status status = EstimateMemory(input, plan).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    }
  }
}

TEST(EstimateMemory, ALanguageModelHasNoLabels) {
  EstimateInput input = TinyInput();
  input.model.family = "gpt2";
  input.model.type_vocab_size = 0;
  input.workload.task = TaskKind::kLanguageModeling;
  const auto labelled = EstimateMemory(input, PlanOf(4, 4));
  ASSERT_TRUE(labelled.ok()) << labelled.status();
  input.workload.num_labels = 0;
  const auto without = EstimateMemory(input, PlanOf(4, 4));
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(*without, *labelled);
}

// The largest sizes that are accepted: nothing overflows, nothing fits.
TEST(EstimateMemory, HugeSizesAreHugeAndPositive) {
  EstimateInput input = TinyInput();
  const int64_t huge = int64_t{1} << 31;
  input.model = {.family = "bert",
                 .vocab_size = 1 << 24,
                 .hidden_size = 1 << 17,
                 .num_layers = 1 << 12,
                 .num_heads = 1 << 12,
                 .intermediate_size = 1 << 20,
                 .max_positions = 1 << 24,
                 .type_vocab_size = 1 << 20};
  input.config.batch_size = huge;
  input.config.grad_accum = huge;
  input.config.max_length = huge;
  input.config.eval_batch_multiplier = huge;
  input.workload.num_labels = huge;
  input.config.head_layers = 3;
  for (int64_t& size : input.config.head_sizes) size = huge;
  for (const char* kind : {"cpu", "cuda"}) {
    input.device.kind = kind;
    const MemoryEstimate estimate = Estimate(input, PlanOf(huge * huge, huge));
    EXPECT_GT(estimate.live_peak, GiB(1 << 20)) << kind;
    EXPECT_GE(estimate.needed_limit, estimate.live_peak) << kind;
    EXPECT_EQ(estimate.live_peak, SumOfClasses(estimate)) << kind;
  }
}

TEST(EstimateMemory, IsOfModelsThatOurTrainerRuns) {
  EstimateInput input = TinyInput();
  input.model.family = "t5";
  EXPECT_EQ(EstimateMemory(input, PlanOf(1, 1)).status().code(), absl::StatusCode::kUnimplemented);
  input.model = TinyInput().model;
  input.model.num_heads = 3;  // of width 8
  EXPECT_EQ(EstimateMemory(input, PlanOf(1, 1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(MemoryEstimate, CountsTheBuffersOfAsManyThreadsAsThereAre) {
  EstimateInput input;
  // Small enough for buffers to matter: with a large vocabulary the peak is elsewhere.
  input.model = *KnownModelShape("bert-base-uncased");
  input.model.vocab_size = 500;
  input.model.hidden_size = 96;
  input.model.intermediate_size = 384;
  input.model.num_layers = 1;
  input.config.batch_size = 4;
  input.config.dropout = 0.0;  // fused attention, whose threads have buffers
  input.device.kind = "cpu";
  const MemoryPlan plan = LiteralPlan(input.config);
  const Bytes unknown = EstimateMemory(input, plan)->live_peak;
  input.device.threads = 64;
  EXPECT_EQ(EstimateMemory(input, plan)->live_peak, unknown);
  input.device.threads = 256;
  const Bytes many = EstimateMemory(input, plan)->live_peak;
  EXPECT_GT(many, unknown);
  input.device.threads = 512;
  EXPECT_GT(EstimateMemory(input, plan)->live_peak, many);
  input.device.threads = 1;
  EXPECT_LT(EstimateMemory(input, plan)->live_peak, unknown);
}

}  // namespace
}  // namespace hpo::memory
