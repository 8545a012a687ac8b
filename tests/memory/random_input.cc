#include "tests/memory/random_input.h"

#include <algorithm>
#include <initializer_list>
#include <random>
#include <string>

#include "memory/need/memory_replay.h"

namespace hpo::memory {
namespace {

class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed) {}

  template <typename Value>
  Value Of(std::initializer_list<Value> values) {
    return *(values.begin() + random_() % values.size());
  }
  bool OneIn(uint64_t times) { return random_() % times == 0; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  std::mt19937_64 random_;
};

ModelShape DrawModel(Draws& draw) {
  ModelShape model;
  model.family = draw.Of<std::string>(
      {"bert", "roberta", "deberta-v2", "distilbert", "electra", "gpt2", "llama", "qwen2"});
  model.vocab_size = draw.Of<int64_t>({100, 1000, 30522, 50265, 128100, 250002});
  model.num_heads = draw.Of<int64_t>({1, 2, 4, 12, 16});
  model.hidden_size = model.num_heads * draw.Of<int64_t>({8, 32, 64, 80});
  model.num_layers = draw.Of<int64_t>({1, 2, 3, 6, 12});
  model.intermediate_size = model.hidden_size * draw.Of<int64_t>({1, 2, 4});
  model.max_positions = 512;
  model.type_vocab_size = 2;
  model.hidden_dropout = draw.Of({0.0, 0.1});
  model.attention_dropout = draw.OneIn(4) ? 0.1 - model.hidden_dropout : model.hidden_dropout;
  if (model.family == "llama" || model.family == "qwen2") {
    model.hidden_act = "silu";
    if (model.num_heads % 2 == 0 && draw.OneIn(2)) model.num_key_value_heads = model.num_heads / 2;
  }
  if (model.family == "deberta-v2" && !draw.OneIn(4)) {
    model.relative = {.span = 256,
                      .bucketed = true,
                      .content_to_position = !draw.OneIn(4),
                      .position_to_content = !draw.OneIn(4),
                      .share_projections = draw.OneIn(2)};
  }
  if (model.family == "electra" && draw.OneIn(2)) model.embedding_size = 128;
  model.tied_head = draw.OneIn(2);
  return model;
}

TaskKind DrawTask(const ModelShape& model, Draws& draw) {
  const bool decodes = model.family == "gpt2" || model.family == "llama" || model.family == "qwen2";
  if (decodes && draw.OneIn(2)) return TaskKind::kLanguageModeling;
  return draw.OneIn(5) ? TaskKind::kTextRegression : TaskKind::kTextClassification;
}

LoraOptions DrawLora(Draws& draw) {
  using Type = FrozenType;
  return {.rank = draw.Of<int64_t>({1, 8, 64}),
          .dropout = draw.Of({0.0, 0.1}),
          .targets = {kAllLinear},
          .base = draw.Of({Type::kFloat32, Type::kBFloat16, Type::kNf4})};
}

TrainingConfig DrawConfig(const ModelShape& model, TaskKind task, Draws& draw) {
  TrainingConfig config;
  config.batch_size = draw.Of<int64_t>({1, 2, 5, 16, 33});
  config.grad_accum = draw.Of<int64_t>({1, 2, 3});
  config.eval_batch_multiplier = draw.Of<int64_t>({1, 1, 4});
  config.max_length = 16 * draw.Of<int64_t>({1, 4, 9, 20, 32});
  if (task != TaskKind::kLanguageModeling) config.head_layers = draw.Of<int64_t>({0, 0, 0, 1, 2});
  std::fill(std::begin(config.head_sizes), std::end(config.head_sizes), 512);
  config.optimizer =
      draw.Of({OptimizerKind::kAdamW, OptimizerKind::kAdamW, OptimizerKind::kAdamW8bit,
               OptimizerKind::kAdafactor, OptimizerKind::kSgd});
  config.precision = draw.Of(
      {Precision::kFloat32, Precision::kFloat32, Precision::kBfloat16, Precision::kFloat16});
  if (draw.OneIn(4)) config.checkpoint_every = draw.Between(1, model.num_layers);
  if (draw.OneIn(4)) {
    config.lora = DrawLora(draw);
  } else if (draw.OneIn(5)) {
    config.freezing = {.embeddings = draw.OneIn(2), .layers = draw.Between(0, model.num_layers)};
  }
  config.unpadded = draw.OneIn(5);
  config.loss_rows = draw.Of<int64_t>({0, 0, 100});
  return config;
}

DeviceProfile DrawDevice(Draws& draw) {
  DeviceProfile device;
  device.kind = "cuda";
  device.base = MiB(draw.Of<int64_t>({0, 300}));
  device.workspace = MiB(draw.Of<int64_t>({0, 16, 64}));
  device.allocator =
      draw.Of<std::string>({"", "", "expandable_segments:True", "max_split_size_mb:64",
                            "garbage_collection_threshold:0.8", "roundup_power2_divisions:4",
                            "expandable_segments:True,roundup_power2_divisions:8"});
  return device;
}

}  // namespace

RandomTrial DrawTrial(uint64_t seed) {
  for (Draws draw(seed);;) {
    RandomTrial trial;
    EstimateInput& input = trial.input;
    input.model = DrawModel(draw);
    input.workload.task = DrawTask(input.model, draw);
    input.workload.num_labels = draw.Of<int64_t>({2, 50});
    if (input.workload.task == TaskKind::kTextRegression) input.workload.num_labels = 1;
    if (input.workload.task == TaskKind::kLanguageModeling) input.workload.num_labels = 0;
    if (draw.OneIn(2)) {
      input.workload.train_lengths = {{draw.Between(1, 80), 900}, {draw.Between(81, 600), 10}};
    }
    input.config = DrawConfig(input.model, input.workload.task, draw);
    input.device = DrawDevice(draw);
    trial.plan.effective_batch = input.config.EffectiveBatch();
    trial.plan.micro_batch = input.config.batch_size;
    trial.plan.checkpointing = input.config.checkpoint_every > 0;
    trial.plan.precision = input.config.precision;
    const auto bound = EstimateMemory(input, trial.plan);
    if (bound.ok() && CanBeReplayed(bound->live_peak)) return trial;
  }
}

}  // namespace hpo::memory
