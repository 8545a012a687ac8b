// Described steps whose model is known: what they take, and what makes them fit.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/study/model_catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "memory/offline/described_step_trace.h"
#include "memory/offline/step_advice.h"
#include "memory/offline/step_check.h"

namespace hpo::memory {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<StepDescription> ParseStep(const std::string& members) {
  return ParseStepDescription("{\"batch\": 8, \"length\": 128, " + members + "}", "step.json");
}

StepDescription Step(const std::string& members) {
  const auto step = ParseStep(members);
  EXPECT_TRUE(step.ok()) << step.status();
  return *step;
}

TEST(KnownModelStep, HoldsItsWeightsGradientsAndMoments) {
  const StepEstimate estimate = EstimateStep(Step(R"("model": "roberta-base")"));
  const int64_t weights = 4 * estimate.num_parameters;
  const auto held = [&estimate](MemoryClass memory_class) {
    return estimate.by_class[static_cast<size_t>(memory_class)].count;
  };
  EXPECT_NEAR(static_cast<double>(held(MemoryClass::kWeights)), static_cast<double>(weights),
              0.001 * static_cast<double>(weights));
  EXPECT_NEAR(static_cast<double>(held(MemoryClass::kOptimizer)),
              2.0 * static_cast<double>(weights), 0.001 * static_cast<double>(weights));
  EXPECT_LE(estimate.live_peak, estimate.reserved_peak);
  EXPECT_LE(estimate.needed_limit, estimate.reserved_peak);
}

std::string WithAdapters(const std::string& lora) {
  return R"({"model": "Qwen/Qwen2.5-0.5B", "batch": 1, "length": 256, "precision": "bfloat16",
             "lora": )" +
         lora + "}";
}

// Frozen weights have neither gradients nor moments; the adapters are in float32.
TEST(KnownModelStep, AdaptersAloneAreTrained) {
  const auto step = ParseStepDescription(
      WithAdapters(R"({"rank": 8, "targets": ["q_proj", "v_proj"], "dropout": 0.1})"), "s.json");
  ASSERT_TRUE(step.ok()) << step.status();
  const StepEstimate estimate = EstimateStep(*step);
  // A and B of 24 layers' queries (896 to 896) and values (896 to 128).
  const int64_t trained = 24 * 8 * ((896 + 896) + (896 + 128));
  EXPECT_EQ(estimate.num_parameters, 494'032'768 + trained);
  const auto of = [&](MemoryClass memory_class) {
    return estimate.by_class[static_cast<size_t>(memory_class)].count;
  };
  EXPECT_NEAR(static_cast<double>(of(MemoryClass::kWeights)), 2.0 * 494'032'768 + 4.0 * trained,
              2e6);
  EXPECT_LT(of(MemoryClass::kGradients), 4 * trained + (1 << 20));
  EXPECT_LT(of(MemoryClass::kOptimizer), 8 * trained + (1 << 20));
}

TEST(KnownModelStep, RefusesAdaptersThatItCannotTrace) {
  for (const char* const lora :
       {R"({"rank": 0})", R"({"rank": 8, "targets": "no_such_module"})", R"({"rank": 8, "r": 1})",
        R"({"rank": 8, "dropout": 1.0})", R"({"rank": 8, "targets": "embed_tokens"})",
        R"({"rank": 8, "targets": [3]})"}) {
    const auto step = ParseStepDescription(WithAdapters(lora), "s.json");
    EXPECT_FALSE(step.ok()) << lora;
  }
}

// A layer's input is kept, and the layer in which backward is.
TEST(KnownModelStep, CheckpointingKeepsOneLayer) {
  for (const char* const name : {"bert-base-uncased", "distilbert-base-uncased",
                                 "microsoft/deberta-v3-base", "gpt2", "Qwen/Qwen2.5-0.5B"}) {
    SCOPED_TRACE(name);
    StepDescription step = Step(absl::StrCat("\"model\": \"", name, "\""));
    step.batch = 64;
    const auto activations = [&step](int64_t layers, bool checkpointing) {
      step.model->shape.num_layers = layers;
      step.model->techniques.checkpointing = checkpointing;
      return EstimateStep(step).by_class[static_cast<size_t>(MemoryClass::kActivations)].count;
    };
    const int64_t hidden = 4 * step.batch * step.length * step.model->shape.hidden_size;
    EXPECT_LE(activations(4, true) - activations(2, true), 2 * hidden + (1 << 20));
    EXPECT_GT(activations(4, false) - activations(2, false), 20 * hidden);
  }
}

TEST(KnownModelStep, CheckpointsAdaptersOfAnEncoder) {
  const std::string adapted =
      R"("model": "roberta-base", "lora": {"rank": 8, "targets": "all-linear"}, "checkpointing": )";
  const StepEstimate plain = EstimateStep(Step(adapted + "false"));
  const StepEstimate checkpointed = EstimateStep(Step(adapted + "true"));
  EXPECT_EQ(plain.num_parameters, checkpointed.num_parameters);
  const auto kept = static_cast<size_t>(MemoryClass::kActivations);
  EXPECT_LT(checkpointed.by_class[kept].count, plain.by_class[kept].count / 2);
  EXPECT_THAT(std::string(ParseStepDescription(
                              R"({"batch": 1, "length": 8, "checkpointing": true, "layers":
                                  [{"type": "embedding", "rows": 8, "width": 8}]})",
                              "s.json")
                              .status()
                              .message()),
              HasSubstr("checkpointing: expected with a model only"));
}

TEST(KnownModelStep, AutocastKeepsLessForBackward) {
  const Bytes full = EstimateStep(Step(R"("model": "microsoft/deberta-v3-base")")).needed_limit;
  const Bytes half =
      EstimateStep(
          Step(R"("model": "microsoft/deberta-v3-base", "precision": "bfloat16-autocast")"))
          .needed_limit;
  EXPECT_LT(half, full);
}

// Of every family that the catalogue knows, by a model of it.
TEST(KnownModelStep, KnowsEveryFamily) {
  for (const char* const name :
       {"bert-base-uncased", "roberta-base", "xlm-roberta-base", "distilbert-base-uncased",
        "google/electra-small-discriminator", "microsoft/deberta-v3-base", "gpt2",
        "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "Qwen/Qwen2.5-0.5B"}) {
    for (const char* const precision : {"float32", "bfloat16", "bfloat16-autocast"}) {
      SCOPED_TRACE(absl::StrCat(name, ", ", precision));
      const StepDescription step =
          Step(absl::StrCat("\"model\": \"", name, "\", \"precision\": \"", precision, "\""));
      const StepEstimate estimate = EstimateStep(step);
      EXPECT_EQ(estimate.num_parameters,
                NumParameters(step.model->shape, step.model->head).value());
      EXPECT_GE(estimate.reserved_peak, estimate.live_peak);
    }
  }
}

// The tied table's gradient comes from both ends and exists once.
TEST(KnownModelStep, TiedHeadsHaveOneGradient) {
  StepDescription step = Step(R"("model": "gpt2", "optimizer": "sgd")");
  const StepEstimate tied = EstimateStep(step);
  step.model->shape.tied_head = false;
  const StepEstimate untied = EstimateStep(step);
  const int64_t head = 4 * 50257 * 768;
  EXPECT_EQ(untied.num_parameters - tied.num_parameters, head / 4);
  EXPECT_GE(untied.live_peak - tied.live_peak, Bytes{head});
  EXPECT_LT(untied.live_peak - tied.live_peak, Bytes{3 * head});
}

TEST(KnownModelStep, FitsBySmallerMicroBatches) {
  StepDescription step =
      Step(R"("model": "bert-base-uncased", "device": {"total_bytes": "4400MiB"})");
  step.batch = 64;
  ASSERT_FALSE(EstimateStep(step).fits);
  const auto changes = CheapestChanges(step);
  ASSERT_FALSE(changes.empty());
  EXPECT_LE(changes.back().device_needed, step.device.total);
  EXPECT_LT(changes.back().step.batch, 64);
  EXPECT_TRUE(LargestBatch(step).has_value());
}

TEST(CheckStep, SaysWhatCannotBeTraced) {
  StepDescription step = Step(R"("model": "bert-base-uncased")");
  EXPECT_TRUE(CheckStep(step).ok());
  step.length = 513;
  EXPECT_THAT(std::string(CheckStep(step).message()), HasSubstr("512"));
  step.length = 512;
  step.batch = 2'000'000'000;
  EXPECT_EQ(CheckStep(step).code(), absl::StatusCode::kInvalidArgument);
  step.batch = 8;
  step.attention = AttentionKernel::kFlash;
  EXPECT_THAT(std::string(CheckStep(step).message()), HasSubstr("16-bit"));
  step.attention = AttentionKernel::kEfficient;
  step.model->shape.hidden_act = "gelu_fast";
  EXPECT_EQ(CheckStep(step).code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(CheckStep(step).message()),
              HasSubstr("hidden_act: expected gelu, gelu_new"));
  step.model->shape = {.family = "t5"};
  EXPECT_EQ(CheckStep(step).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(CheckStep(StepDescription{.batch = 1, .length = 1}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(NamedWords, AreThoseOfTheDescription) {
  EXPECT_EQ(OptimizerNamed("adamw-fused").value(), StepOptimizer::kAdamFused);
  StepDescription named;
  ASSERT_TRUE(SetPrecision("float16-autocast", named).ok());
  EXPECT_EQ(named.precision, StepPrecision::kAutocast);
  EXPECT_TRUE(named.float16);
  EXPECT_THAT(std::string(OptimizerNamed("adam").status().message()), HasSubstr("adam-foreach"));
  EXPECT_EQ(SetPrecision("fp16", named).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hpo::memory
