#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "memory/offline/described_step_trace.h"
#include "memory/offline/step_advice.h"
#include "memory/offline/step_check.h"
#include "memory/offline/step_description.h"
#include "memory/trace/lora.h"

namespace hpo::memory {
namespace {

// The third program of bench/published/memory_published.csv.
constexpr char kPublished[] = R"({
  "layers": [
    {"type": "embedding", "rows": 700962, "width": 768},
    {"type": "positions", "rows": 512},
    {"type": "encoder", "layers": 2, "heads": 8, "feed_forward": 1663},
    {"type": "pooling", "kind": "mean"},
    {"type": "linear", "out": 553}],
  "batch": 32, "length": 512, "optimizer": "adam-foreach", "warm_up_forwards": 2,
  "device": {"base_bytes": 0}})";

StepDescription Parsed(const std::string& json) {
  const auto step = ParseStepDescription(json, "test");
  EXPECT_TRUE(step.ok()) << step.status();
  return step.value_or(StepDescription{});
}

StepDescription Published() { return Parsed(kPublished); }

TEST(StepDescription, ReadsWhatItSaysAndDefaultsTheRest) {
  const StepDescription step = Published();
  ASSERT_EQ(step.layers.size(), 5U);
  const auto& encoder = std::get<EncoderLayers>(step.layers[2]);
  EXPECT_EQ(encoder.count, 2);
  EXPECT_EQ(encoder.feed_forward, 1663);
  EXPECT_FALSE(encoder.norm_first);
  EXPECT_EQ(encoder.attention_dropout, 0.1);
  EXPECT_EQ(step.attention, AttentionKernel::kEfficient);
  EXPECT_EQ(step.device.base, Bytes{});
  EXPECT_EQ(step.device.total.count, AllocatorOptions::kUnlimited);
  const StepDescription half = Parsed(
      R"({"layers": [{"type": "embedding", "rows": 9, "width": 4}], "batch": 1, "length": 2,
          "precision": "bfloat16", "device": {"total_bytes": "8GiB"},
          "allocator": {"expandable_segments": true}})");
  EXPECT_EQ(half.attention, AttentionKernel::kFlash);
  EXPECT_EQ(half.device.total, GiB(8));
  EXPECT_TRUE(half.allocator.expandable_segments);
}

TEST(StepDescription, TakesAModelByNameOrByItsConfiguration) {
  const StepDescription named = Parsed(R"({"model": "roberta-base", "batch": 2, "length": 16})");
  ASSERT_TRUE(named.model.has_value());
  EXPECT_TRUE(named.layers.empty());
  EXPECT_EQ(named.model->head.num_labels, 2);
  const StepDescription configured = Parsed(
      R"({"model": {"model_type": "roberta", "vocab_size": 50265, "hidden_size": 768,
                    "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
                    "max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1,
                    "layer_norm_eps": 1e-5},
          "num_labels": 7, "batch": 2, "length": 16})");
  ASSERT_TRUE(configured.model.has_value());
  EXPECT_EQ(configured.model->shape, named.model->shape);
  EXPECT_EQ(configured.model->head.num_labels, 7);
}

TEST(StepDescription, GivesAModelTheHeadOfItsFamily) {
  StepDescription step = Parsed(R"({"model": "Qwen/Qwen2.5-0.5B", "batch": 2, "length": 16})");
  EXPECT_EQ(step.model->head.kind, TaskHead::Kind::kCausalLm);
  EXPECT_EQ(DescribeModel(step.model->shape).head, step.model->head);
  EXPECT_TRUE(CheckStep(step).ok()) << CheckStep(step);
  step.model->head.kind = TaskHead::Kind::kNone;
  EXPECT_EQ(CheckStep(step).message(),
            "task: expected text-classification or language-modeling with qwen2");
  step = Parsed(R"({"model": "bert-base-cased", "batch": 2, "length": 16})");
  step.model->head.kind = TaskHead::Kind::kCausalLm;
  EXPECT_EQ(CheckStep(step).message(), "task: expected text-classification with bert");
}

// Which needs no logits over the vocabulary.
TEST(StepDescription, ClassifiesWithADecoder) {
  const std::string common = R"("model": "Qwen/Qwen2.5-0.5B", "batch": 16, "length": 256)";
  const StepDescription tokens = Parsed("{" + common + "}");
  const StepDescription rows =
      Parsed("{" + common + R"(, "task": "text-classification", "num_labels": 3})");
  EXPECT_EQ(rows.model->head.kind, TaskHead::Kind::kSequenceClassification);
  EXPECT_EQ(rows.model->head.num_labels, 3);
  const StepEstimate of_tokens = EstimateStep(tokens);
  const StepEstimate of_rows = EstimateStep(rows);
  EXPECT_EQ(of_rows.num_parameters - of_tokens.num_parameters, 3 * 896);
  EXPECT_LT(of_rows.tensors, of_tokens.tensors);
}

TEST(StepDescription, RefusesModelsThatItCannotTrace) {
  const auto with = [](const std::string& model, const std::string& more = "") {
    return R"({"batch": 2, "length": 16, "model": )" + model + more + "}";
  };
  const std::pair<std::string, std::string> cases[] = {
      {with("3"),
       "model: expected a model's name or the content of its config.json, got the integer 3"},
      {with(R"("roberta-bas")"), "did you mean 'roberta-base'?"},
      {with(R"("Qwen/Qwen2.5-0.5B")", R"(, "num_labels": 2)"),
       "num_labels: expected with the task text-classification only, got language-modeling"},
      {with(R"("bert-base-cased")", R"(, "task": "language-modeling")"),
       "task: expected text-classification with bert"},
      {with(R"("bert-base-cased")", R"(, "task": "text-clasification")"),
       "did you mean 'text-classification'?"},
      {R"({"layers": [], "task": "language-modeling", "batch": 1, "length": 1})",
       "task: expected with a model only"},
      {with(R"({"model_type": "t5"})"), "got 't5'"},
      {with(R"({"model_type": "bert"})"), "model: config.json: vocab_size: missing"},
      {with(R"("bert-base-cased")", R"(, "num_labels": 0)"),
       "num_labels: expected an integer from 1 to 1048576, got the integer 0"},
      {with(R"("bert-base-cased")", R"(, "layers": [])"), "layers: expected none with a model"},
      {R"({"model": "bert-base-cased", "batch": 1, "length": 513})",
       "length: expected at most the model's 512 positions, got 513"},
      {R"({"model": "microsoft/deberta-v3-large", "batch": 2147483648, "length": 512})",
       "expected tensors below 16.00 TiB"},
      {R"({"layers": [], "num_labels": 2, "batch": 1, "length": 1})",
       "num_labels: expected with a model only"},
  };
  for (const auto& [json, expected] : cases) {
    const auto step = ParseStepDescription(json, "spec.json");
    ASSERT_FALSE(step.ok()) << json;
    EXPECT_EQ(step.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(step.status().message()).find(expected), std::string::npos)
        << step.status().message();
  }
}

TEST(StepDescription, RefusesWithPlaceExpectationAndValue) {
  const std::string embedding = R"({"type": "embedding", "rows": 9, "width": 4})";
  const auto with = [&](const std::string& layers, const std::string& more = "") {
    return R"({"layers": [)" + layers + R"(], "batch": 2, "length": 3)" + more + "}";
  };
  const std::pair<std::string, std::string> cases[] = {
      {"{", "expected JSON, got something else at byte 2"},
      {"[]", "expected an object, got an array"},
      {with(""), "layers: expected an embedding, features or an image first, got no layer"},
      {with(R"({"type": "linear", "out": 3})"),
       "layers[0]: expected an embedding, features or an image first"},
      {with(embedding + "," + embedding),
       "layers[1]: expected an embedding, features or an image as the first layer alone"},
      {with(embedding + R"(,{"type": "convolution", "out": 3, "kernel": 1})"),
       "layers[1]: expected an image or a convolution before it"},
      {with(R"({"type": "features", "width": 4},{"type": "language_head"})"),
       "layers[1]: expected an embedding as the first layer with it"},
      {with(embedding + R"(,{"type": "linear", "out": 5},{"type": "language_head"})"),
       "layers[2]: tied: expected the embedding's width 4, got 5"},
      {with(embedding, R"(, "last_batch": 3)"),
       "last_batch: expected an integer from 1 to 2, got the integer 3"},
      {with(embedding + R"(,{"type": "encoder", "layers": 1, "heads": 3, "feed_forward": 8})"),
       "layers[1]: heads: expected a divisor of the width 4, got 3"},
      {with(embedding + R"(,{"type": "positions", "rows": 2})"),
       "layers[1]: rows: expected at least the length 3, got 2"},
      {with(R"({"type": "embedding", "rows": 0, "width": 4})"),
       "layers: [0]: rows: expected an integer from 1 to 2147483648, got the integer 0"},
      {with(R"({"type": "embedding", "rows": -1, "width": 4})"), "got the integer -1"},
      {with(R"({"type": "embedding", "rows": 1099511627776, "width": 4})"),
       "got the integer 1099511627776"},
      {with(R"({"type": "embedding", "rows": 2147483648, "width": 2147483648})"),
       "layers[0]: expected tensors below 16.00 TiB, got one of 8 x 2147483648 x 2147483648 bytes"},
      {with(R"({"type": "embeding", "rows": 1, "width": 1})"), "did you mean 'embedding'?"},
      {with(embedding, R"(, "optimiser": "sgd")"), "did you mean 'optimizer'?"},
      {with(embedding, R"(, "attention": "flash")"), "expected efficient or math with float32"},
      {with(embedding, R"(, "optimizer": 3)"), "optimizer: expected one of none, sgd"},
      {with(embedding, R"(, "steps": 0)"),
       "steps: expected an integer from 1 to 100, got the integer 0"},
      {with(embedding, R"(, "allocator": {"garbage_collection_threshold": 2})"),
       "garbage_collection_threshold: expected 0 <= threshold < 1, got 2"},
      {with(embedding, R"(, "device": {"base_bytes": -3})"), "got the integer -3"},
      {with(embedding, R"(, "last_batch": 3)"),
       "last_batch: expected an integer from 1 to 2, got the integer 3"},
      {with(embedding + R"(,{"type":"encoder","layers":4096,"heads":1,"feed_forward":8})",
            R"(, "steps": 100)"),
       "runs of a layer"},
  };
  for (const auto& [json, message] : cases) {
    const auto step = ParseStepDescription(json, "file.json");
    ASSERT_FALSE(step.ok()) << json;
    EXPECT_EQ(step.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string text(step.status().message());
    EXPECT_NE(text.find(message), std::string::npos) << text;
    EXPECT_EQ(text.rfind("file.json: ", 0), 0U) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

constexpr char kImage[] = R"({"type": "image", "channels": 3, "height": 224, "width": 224})";

std::string Picture(const std::string& layers) {
  return std::string(R"({"batch": 8, "layers": [)") + kImage + "," + layers + "]}";
}

TEST(StepDescription, RefusesConvolutionsThatDoNotFit) {
  const std::string convolution = R"({"type": "convolution", "out": 8, "kernel": 300})";
  const std::pair<std::string, std::string> cases[] = {
      {Picture(convolution), "layers[1]: kernel: expected at most the padded side 224, got 300"},
      {Picture(R"({"type": "linear", "out": 8})"),
       "layers[1]: expected a convolution after an image"},
      {Picture(R"({"type": "convolution", "out": 8, "kernel": 3, "padding": -1})"), "padding"},
      {std::string(R"({"batch": 8, "length": 9, "layers": [)") + kImage + "]}",
       "length: expected none with an image, whose convolutions say it"},
  };
  for (const auto& [json, message] : cases) {
    const auto step = ParseStepDescription(json, "file.json");
    ASSERT_FALSE(step.ok()) << json;
    EXPECT_NE(std::string(step.status().message()).find(message), std::string::npos)
        << step.status().message();
  }
}

Bytes Of(const StepEstimate& estimate, MemoryClass memory_class) {
  return estimate.by_class[static_cast<size_t>(memory_class)];
}

// By hand: input, two outputs of the first product (its activation keeps one), logits, loss.
TEST(DescribedStep, TakesFeaturesWithoutAnEmbedding) {
  const StepDescription step = Parsed(
      R"({"layers": [{"type": "features", "width": 784}, {"type": "linear", "out": 4096},
                     {"type": "activation", "function": "relu"}, {"type": "linear", "out": 16}],
          "batch": 1024, "optimizer": "sgd"})");
  EXPECT_EQ(step.length, 1);
  const StepEstimate estimate = EstimateStep(step);
  EXPECT_EQ(estimate.num_parameters, 784 * 4096 + 4096 + 4096 * 16 + 16);
  const int64_t input = 4 * 1024 * 784;
  const int64_t hidden = 4 * 1024 * 4096;
  // The peak is in backward: the gradient of the hidden layer and what relu keeps, its result,
  // and what the sum for the bias's gradient takes for itself.
  const int64_t held = Of(estimate, MemoryClass::kActivations).count;
  const int64_t temporary = Of(estimate, MemoryClass::kTemporary).count;
  EXPECT_GE(held + temporary, input + 2 * hidden);
  const int64_t logits_and_labels = 1024 * (4 * 16 + 8);
  EXPECT_LE(held + temporary, input + 3 * hidden + logits_and_labels + 4096);
}

// A vision transformer of base size: 16 x 16 patches, learned positions, a class token left out.
TEST(DescribedStep, TakesConvolutionsBeforeTheEncoder) {
  const StepDescription step = Parsed(Picture(
      R"({"type": "convolution", "out": 768, "kernel": 16, "stride": 16},
         {"type": "positions", "rows": 196},
         {"type": "encoder", "layers": 12, "heads": 12, "feed_forward": 3072, "norm": "pre",
          "activation": "gelu", "dropout": 0.0},
         {"type": "norm"}, {"type": "pooling", "kind": "mean"}, {"type": "linear", "out": 1000})"));
  const StepEstimate estimate = EstimateStep(step);
  const int64_t layer = 4 * 768 * 768 + 4 * 768 + 2 * 768 * 3072 + 3072 + 768 + 4 * 768;
  EXPECT_EQ(estimate.num_parameters,
            3 * 16 * 16 * 768 + 768 + 196 * 768 + 12 * layer + 2 * 768 + 768 * 1000 + 1000);
  // The same layers on 196 tokens: the image itself is what is left.
  const StepDescription text = Parsed(
      R"({"batch": 8, "length": 196, "layers": [{"type": "embedding", "rows": 769, "width": 768},
         {"type": "positions", "rows": 196},
         {"type": "encoder", "layers": 12, "heads": 12, "feed_forward": 3072, "norm": "pre",
          "activation": "gelu", "dropout": 0.0},
         {"type": "norm"}, {"type": "pooling", "kind": "mean"}, {"type": "linear", "out": 1000}]})");
  const auto total = static_cast<double>(EstimateStep(text).live_peak.count);
  EXPECT_NEAR(static_cast<double>(estimate.live_peak.count), total, 0.01 * total);
}

TEST(DescribedStep, TakesConvolutionsInARow) {
  const StepDescription step = Parsed(Picture(
      R"({"type": "convolution", "out": 64, "kernel": 7, "stride": 2, "padding": 3},
         {"type": "activation", "function": "relu"},
         {"type": "convolution", "out": 128, "kernel": 3, "stride": 2, "padding": 1, "bias": false},
         {"type": "flatten"}, {"type": "linear", "out": 10})"));
  const StepEstimate estimate = EstimateStep(step);
  EXPECT_EQ(estimate.num_parameters, 3 * 49 * 64 + 64 + 64 * 9 * 128 + 128 * 56 * 56 * 10 + 10);
  const int64_t first = 4 * 8 * 64 * 112 * 112;
  const int64_t second = 4 * 8 * 128 * 56 * 56;
  EXPECT_GE(Of(estimate, MemoryClass::kActivations).count, first + second);
}

TEST(DescribedStep, ALanguageHeadMakesLogitsOfEveryToken) {
  const auto with = [](const std::string& tied) {
    return EstimateStep(Parsed(
        R"({"layers": [{"type": "embedding", "rows": 32000, "width": 256},
                       {"type": "encoder", "layers": 2, "heads": 4, "feed_forward": 1024},
                       {"type": "language_head", "tied": )" +
        tied + R"(}], "batch": 4, "length": 128, "precision": "bfloat16"})"));
  };
  const StepEstimate tied = with("true");
  EXPECT_EQ(with("false").num_parameters - tied.num_parameters, 32000 * 256);
  // In 16 bits, in float32, and the probabilities that the loss keeps.
  const int64_t tokens = 4 * 128;
  EXPECT_GE(Of(tied, MemoryClass::kActivations).count, (4 + 4) * tokens * 32000);
}

TEST(DescribedStep, AShorterLastBatchIsReplayedAfterTheSteps) {
  StepDescription step = Published();
  const size_t before = TraceOfStep(step).events.size();
  step.last_batch = 31;
  const size_t after = TraceOfStep(step).events.size();
  step.last_batch.reset();
  step.steps += 2;
  EXPECT_NEAR(static_cast<double>(after), static_cast<double>(TraceOfStep(step).events.size()), 8);
  EXPECT_GT(after, before);
  step.steps -= 2;
  step.accumulation = 2;
  step.last_batch = 1;
  EXPECT_GE(EstimateStep(step).needed_limit, EstimateStep(step).tensors);
}

TEST(DescribedStep, FrozenWeightsInFourBitsAreWhatBitsandbytesKeeps) {
  const auto with = [](const std::string& base) {
    return EstimateStep(Parsed(
        R"({"model": "Qwen/Qwen2.5-0.5B", "batch": 1, "length": 64, "precision": "bfloat16",
            "lora": {"rank": 8, "base": ")" +
        base + "\"}}"));
  };
  const StepEstimate half = with("bf16");
  const StepEstimate quantised = with("nf4");
  EXPECT_EQ(half.num_parameters, quantised.num_parameters);
  const StepDescription step = Parsed(R"({"model": "Qwen/Qwen2.5-0.5B", "batch": 1, "length": 1})");
  const auto tensors = ParameterTensors(step.model->shape, step.model->head).value();
  const auto in_blocks = [&tensors](const FrozenStorage& storage) {
    Bytes total;
    for (const ParameterTensor& tensor : tensors) {
      for (const int64_t bytes : StoredTensorBytes(tensor, storage)) {
        total += RoundUp(Bytes{bytes}, Bytes{512});
      }
    }
    return total;
  };
  const Bytes saved = in_blocks({.type = FrozenStorage::Type::kBFloat16}) -
                      in_blocks({.type = FrozenStorage::Type::kNf4, .rest_element_bytes = 2});
  const Bytes difference = Of(half, MemoryClass::kWeights) - Of(quantised, MemoryClass::kWeights);
  EXPECT_NEAR(static_cast<double>(difference.count), static_cast<double>(saved.count), 2048.0);
}

TEST(DescribedStep, CountsParametersAsTorchDoes) {
  const int64_t width = 768;
  const int64_t layer = 4 * width * width + 4 * width + 2 * width * 1663 + 1663 + width + 4 * width;
  EXPECT_EQ(NumParameters(Published()),
            700962 * width + 512 * width + 2 * layer + 553 * width + 553);
}

TEST(DescribedStep, MeetsThePublishedMeasurement) {
  const StepEstimate estimate = EstimateStep(Published());
  // 13,503 MiB on the device, 1,429 of them context and libraries.
  EXPECT_NEAR(static_cast<double>(estimate.reserved_peak.count) / (1 << 20), 13503 - 1429, 10);
  EXPECT_EQ(estimate.peak_phase, "optimizer step");
  Bytes sum;
  for (const Bytes bytes : estimate.by_class) sum += bytes;
  EXPECT_EQ(sum, estimate.tensors);
  EXPECT_GE(estimate.live_peak, estimate.tensors);
  EXPECT_GE(estimate.reserved_peak, estimate.live_peak);
  EXPECT_GE(estimate.needed_limit, estimate.live_peak);
  // Of the largest of its orders.
  EXPECT_LE(estimate.needed_limit, estimate.reserved_high + MiB(2));
}

// Eight rows as the others, or one less at an epoch's end, which splits the block that the
// embedding's gradient wants.
TEST(DescribedStep, IsFragileWhereASmallerBatchMayFollow) {
  const auto with = [](const std::string& more) {
    return Parsed(R"({"layers": [
        {"type": "embedding", "rows": 747776, "width": 1024}, {"type": "positions", "rows": 256},
        {"type": "encoder", "layers": 11, "heads": 2, "feed_forward": 3624},
        {"type": "pooling", "kind": "mean"}, {"type": "linear", "out": 605}],
        "batch": 32, "length": 256, "warm_up_forwards": 2)" +
                  more + "}");
  };
  const StepEstimate whole = EstimateStep(with(""));
  EXPECT_TRUE(whole.fragile);
  EXPECT_GT(whole.reserved_high, whole.reserved_peak + GiB(2));
  EXPECT_FALSE(EstimateStep(with(R"(, "last_batch": 19)")).fragile);
}

TEST(DescribedStep, NeedsWhatEachOptimizerKeeps) {
  const auto optimizer_bytes = [](const char* name) {
    const StepDescription step =
        Parsed(std::string(R"({"layers": [{"type": "embedding", "rows": 1000, "width": 1024}],
          "batch": 1, "length": 1, "optimizer": ")") +
               name + "\"}");
    const StepEstimate estimate = EstimateStep(step);
    return std::pair(estimate.by_class[static_cast<size_t>(MemoryClass::kOptimizer)].count,
                     estimate.by_class[static_cast<size_t>(MemoryClass::kTemporary)].count);
  };
  const int64_t p = 4 * 1000 * 1024;
  using Pair = std::pair<int64_t, int64_t>;
  EXPECT_EQ(optimizer_bytes("sgd"), (Pair{0, 0}));
  EXPECT_EQ(optimizer_bytes("sgd-momentum"), (Pair{p, 0}));
  EXPECT_EQ(optimizer_bytes("adam-fused"), (Pair{2 * p + 512, 0}));
  EXPECT_EQ(optimizer_bytes("adam-foreach"), (Pair{2 * p, p}));
  EXPECT_EQ(optimizer_bytes("adam-loop"), (Pair{2 * p, 2 * p}));
}

TEST(DescribedStep, CheckpointingAndAutocastLowerActivations) {
  StepDescription step = Published();
  std::get<EncoderLayers>(step.layers[2]).count = 12;
  const auto activations = [](const StepDescription& s) {
    return FindLivePeak(TraceOfStep(s), Bytes{512}).peak;
  };
  const Bytes plain = activations(step);
  StepDescription checkpointed = step;
  std::get<EncoderLayers>(checkpointed.layers[2]).checkpointing = true;
  EXPECT_LT(activations(checkpointed), plain);
  StepDescription autocast = step;
  autocast.precision = StepPrecision::kAutocast;
  autocast.attention = AttentionKernel::kFlash;
  EXPECT_LT(activations(autocast), plain);
}

TEST(DescribedStep, EveryTraceFreesWhatItAllocatedOnce) {
  StepDescription step = Published();
  std::get<EncoderLayers>(step.layers[2]).checkpointing = true;
  step.accumulation = 2;
  step.clips = step.evaluates = step.evaluates_first = true;
  for (const bool norm_first : {false, true}) {
    for (const auto precision :
         {StepPrecision::kFloat32, StepPrecision::kHalf, StepPrecision::kAutocast}) {
      std::get<EncoderLayers>(step.layers[2]).norm_first = norm_first;
      step.precision = precision;
      const AllocationTrace trace = TraceOfStep(step);
      std::vector<int> events(static_cast<size_t>(trace.num_blocks), 0);
      for (const TraceEvent& event : trace.events) {
        ASSERT_EQ(events[static_cast<size_t>(event.block)]++, event.allocates ? 0 : 1);
      }
    }
  }
}

TEST(StepAdvice, FindsTheLargestBatchAndTheCheapestChanges) {
  StepDescription step = Published();
  EXPECT_TRUE(EstimateStep(step).fits);
  EXPECT_EQ(LargestBatch(step), 32);
  EXPECT_TRUE(CheapestChanges(step).empty());

  step.device.total = GiB(10);
  ASSERT_FALSE(EstimateStep(step).fits);
  // The states of 547 M parameters alone are 8.2 GiB; the square roots of the step 2 more.
  std::vector<StepChange> changes = CheapestChanges(step);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes[0].what, "fused optimizer");
  EXPECT_TRUE(EstimateStep(changes.back().step).fits);
  for (size_t i = 1; i < changes.size(); ++i) {
    EXPECT_LT(changes[i].device_needed, changes[i - 1].device_needed);
    EXPECT_GE(changes[i].step.batch * changes[i].step.accumulation, 32);
  }

  step.device.total = GiB(4);
  EXPECT_EQ(LargestBatch(step), std::nullopt);
  changes = CheapestChanges(step);
  EXPECT_FALSE(EstimateStep(changes.back().step).fits);
}

TEST(StepAdvice, TheLargestBatchFitsAndOneMoreDoesNot) {
  StepDescription step = Published();
  step.optimizer = StepOptimizer::kAdamFused;
  step.batch = 200;
  for (const int64_t gib : {10, 12, 16, 24}) {
    step.device.total = GiB(gib);
    StepDescription tried = step;
    const std::optional<int64_t> largest = LargestBatch(step);
    ASSERT_TRUE(largest.has_value()) << gib;
    tried.batch = *largest;
    EXPECT_TRUE(EstimateStep(tried).fits);
    ++tried.batch;
    EXPECT_EQ(EstimateStep(tried).fits, *largest == 200);
  }
}

TEST(DescribedStep, ASizeWithoutItsUnitIsRefused) {
  const auto step = ParseStepDescription(
      R"({"model": "bert-base-uncased", "batch": 1, "length": 8, "device": {"total_bytes": "24"}})",
      "test");
  EXPECT_THAT(
      std::string(step.status().message()),
      testing::HasSubstr("device: total_bytes: expected a number of bytes or a size such as"));
}

// Adding the states up by hand; what is saved for backward is model_trace_test's.
TEST(DescribedStep, OfAKnownModelHoldsItsParametersFourTimes) {
  const StepDescription step = Parsed(
      R"({"model": "bert-base-uncased", "num_labels": 3, "batch": 1, "length": 8,
          "optimizer": "adamw-fused", "device": {"base_bytes": 0}})");
  const StepEstimate estimate = EstimateStep(step);
  EXPECT_EQ(estimate.num_parameters, 109'484'547);
  const auto bytes = [&](MemoryClass memory_class) {
    return estimate.by_class[static_cast<size_t>(memory_class)].count;
  };
  EXPECT_NEAR(static_cast<double>(bytes(MemoryClass::kWeights)), 4 * 109'484'547.0, 60'000);
  EXPECT_NEAR(static_cast<double>(bytes(MemoryClass::kOptimizer)), 8 * 109'484'547.0, 320'000);
  EXPECT_EQ(estimate.peak_phase, "backward");
}

// The out-of-memory error of a reported run: DeBERTa of base size, 128 rows of 384 tokens, 31.5 GB.
TEST(DescribedStep, DebertaNeedsFarMoreThanBertOfItsSize) {
  const auto device_needed = [](const std::string& model, const std::string& batch) {
    const auto step = Parsed(R"({"model": ")" + model + R"(", "batch": )" + batch +
                             R"(, "length": 384, "device": {"total_bytes": "31.5GB"}})");
    return EstimateStep(step);
  };
  const StepEstimate deberta = device_needed("microsoft/deberta-v3-base", "128");
  EXPECT_FALSE(deberta.fits);
  EXPECT_GT(deberta.device_needed, GiB(80));
  EXPECT_LT(device_needed("roberta-base", "128").device_needed, GiB(40));
  EXPECT_TRUE(device_needed("microsoft/deberta-v3-base", "32").fits);
}

}  // namespace
}  // namespace hpo::memory
