#include "tests/memory/varying_trial.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <span>

#include "memory/need/memory_replay.h"

namespace hpo::memory {
namespace {

using Random = std::mt19937_64;

template <typename Value, size_t kSize>
Value OneOf(const Value (&values)[kSize], Random& random) {
  return values[random() % kSize];
}

// With its activations not next to nothing compared with the weights.
RandomTrial DrawHeavyTrial(Random& random) {
  while (true) {
    RandomTrial trial = DrawTrial(random());
    EstimateInput& input = trial.input;
    ModelShape& model = input.model;
    model.vocab_size = OneOf<int64_t>({1000, 30522, 50265}, random);
    model.num_heads = OneOf<int64_t>({4, 6, 12, 16}, random);
    if (model.num_key_value_heads > 0) model.num_key_value_heads = model.num_heads / 2;
    model.hidden_size = 64 * model.num_heads;
    model.embedding_size = 0;
    model.intermediate_size = 4 * model.hidden_size;
    model.num_layers = OneOf<int64_t>({2, 4, 6, 12}, random);
    TrainingConfig& config = input.config;
    config.batch_size = OneOf<int64_t>({4, 8, 16, 32}, random);
    config.grad_accum = OneOf<int64_t>({1, 1, 2, 3}, random);
    config.max_length = OneOf<int64_t>({128, 256, 384, 512}, random);
    config.checkpoint_every = std::min<int64_t>(config.checkpoint_every, 1);
    config.freezing = {};
    trial.plan.effective_batch = config.EffectiveBatch();
    trial.plan.micro_batch = config.batch_size;
    input.device.workspace = MiB(16);
    if (random() % 2 == 0) input.device.allocator = "";
    const auto bound = EstimateMemory(input, trial.plan);
    if (bound.ok() && CanBeReplayed(bound->live_peak)) return trial;
  }
}

std::vector<BatchShape> PartsOf(const RandomTrial& trial, std::vector<int64_t> rows,
                                int64_t at_once) {
  const EstimateInput& input = trial.input;
  const int64_t most = std::min(input.config.max_length, input.model.max_positions);
  for (int64_t& tokens : rows) tokens = std::min(tokens, most);
  std::sort(rows.begin(), rows.end(), std::greater<>());
  std::vector<BatchShape> parts;
  for (size_t begin = 0; begin < rows.size(); begin += static_cast<size_t>(at_once)) {
    const auto part =
        std::span(rows).subspan(begin, std::min(rows.size() - begin, static_cast<size_t>(at_once)));
    parts.push_back(input.config.unpadded
                        ? BatchShape::Of(PackRows(part))
                        : BatchShape{.rows = std::ssize(part),
                                     .tokens = LongestTokens(input, {{part.front(), 1}})});
  }
  return parts;
}

}  // namespace

VaryingTrial DrawVaryingTrial(uint64_t seed, int64_t num_steps) {
  Random random(seed);
  VaryingTrial drawn{.trial = DrawHeavyTrial(random)};
  EstimateInput& input = drawn.trial.input;
  const int64_t batch = drawn.trial.plan.effective_batch;
  std::lognormal_distribution<double> spread(0.0, 0.2 + 0.15 * static_cast<double>(random() % 5));
  const double middle = static_cast<double>(input.config.max_length) *
                        (0.2 + 0.2 * static_cast<double>(random() % 5));
  const int64_t left_over = random() % 2 == 0 ? static_cast<int64_t>(random()) % batch : 0;
  const int64_t rows = num_steps * batch + std::max<int64_t>(left_over, 0);
  const auto draw = [&](int64_t count, std::vector<int64_t>& lengths, LengthHistogram& histogram) {
    histogram.clear();
    for (int64_t i = 0; i < count; ++i) {
      lengths.push_back(std::max<int64_t>(3, std::llround(middle * spread(random))));
      ++histogram[lengths.back()];
    }
  };
  draw(rows, drawn.training_rows, input.workload.train_lengths);
  draw(1 + rows / 6, drawn.evaluation_rows, input.workload.validation_lengths);
  return drawn;
}

TrialPasses ShuffledPasses(const VaryingTrial& varying, uint64_t seed) {
  const RandomTrial& trial = varying.trial;
  const MemoryPlan& plan = trial.plan;
  const auto evaluation = PartsOf(trial, varying.evaluation_rows,
                                  plan.micro_batch * trial.input.config.eval_batch_multiplier);
  std::vector<int64_t> rows = varying.training_rows;
  std::sort(rows.begin(), rows.end(), std::greater<>());
  rows.resize(static_cast<size_t>(std::min(plan.effective_batch, 2 * plan.micro_batch)));
  TrialPasses passes;
  passes.stretches = {
      {.steps = {PartsOf(trial, rows, plan.micro_batch)}, .evaluation = {evaluation.front()}},
      {.steps = {}, .evaluation = evaluation}};
  rows = varying.training_rows;
  Random random(seed);
  std::shuffle(rows.begin(), rows.end(), random);
  const auto batch = static_cast<size_t>(plan.effective_batch);
  for (size_t begin = 0; begin < rows.size(); begin += batch) {
    const auto step = std::span(rows).subspan(begin, std::min(batch, rows.size() - begin));
    passes.stretches.back().steps.push_back(
        PartsOf(trial, {step.begin(), step.end()}, plan.micro_batch));
  }
  return passes;
}

}  // namespace hpo::memory
