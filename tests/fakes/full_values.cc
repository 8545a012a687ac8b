#include "tests/fakes/full_values.h"

#include <limits>

#include "common/study/model_catalog.h"
#include "common/study_file/study_file.h"

namespace hpo {

Budget FullBudget() {
  return {.trials = 3,
          .wall_clock = absl::Milliseconds(1500),
          .trial_wall_clock = absl::Minutes(5),
          .no_progress = 4,
          .regret_bound = RegretBound{.gap = 0.125},
          .target = -0.5,
          .failures_in_a_row = 0,
          .failed_share = 0.75};
}

MemoryPlan FullPlan() {
  return {.effective_batch = 32,
          .micro_batch = 3,
          .checkpointing = true,
          .precision = Precision::kBfloat16};
}

StudySpec FullStudySpec() {
  StudySpec spec = LoadStudy("criteria", {}).value();
  spec.name = "full";
  spec.objectives.push_back({"loss", Direction::kMinimize});
  spec.trainer = {.task = "custom",
                  .train = "a",
                  .validation = "b",
                  .epochs = 7,
                  .model_init = "random",
                  .measure_every_steps = 9,
                  .labels = {"x"},
                  .defaults = {{"train.warmup", 0.1}, {"flag", true}, {"steps", int64_t{3}}},
                  .command = {"python", "{train.lr}"},
                  .workdir = "there",
                  .gpus = 4};
  spec.budget = FullBudget();
  spec.warm_start = {"first", "second"};
  spec.constraints = {{.metric = "ms", .at_most = 50.5},
                      {.metric = "recall", .at_least = -1.0, .at_most = 1.0}};
  spec.memory = {.policy = MemoryPolicy::kOff,
                 .headroom = MiB(3),
                 .allow_checkpointing = true,
                 .allow_lower_precision = true,
                 .relevant = {"train.lr"}};
  spec.sampler = {.type = "random", .seed = UINT64_MAX, .startup_trials = 1, .startup = "sobol"};
  spec.pruner = {.type = "hyperband", .min_resource = 2, .max_resource = 81, .reduction_factor = 4};
  spec.heavy_models = {"roberta-base"};
  spec.space.parameters.resize(3);
  spec.space.parameters.push_back(
      {.name = "real",
       .domain = FloatDomain{.low = -0.5, .high = 0.5, .step = 0.25},
       .when = {{.name = "model.class", .values = {ParamValue(std::string("heavy"))}}},
       .modelled = false,
       .default_value = 0.0});
  spec.space.narrowings.resize(1);
  spec.space.model_facts = {{"m", {{"model.class", std::string("base")}}}};
  return spec;
}

OutOfMemory FullOutOfMemory() {
  return {.kind = OomKind::kLatePeak,
          .predicted = true,
          .requested = MiB(20),
          .peak = GiB(7),
          .limit = GiB(8),
          .needed = GiB(9),
          .phase = "backward",
          .step = 12,
          .plan = FullPlan(),
          .message = "CUDA out of memory",
          .traceback = "Train\nTryBatch"};
}

MemoryRecord FullMemoryRecord() {
  return {.stage = "replan",
          .allocated = MiB(1),
          .reserved = MiB(2),
          .free = MiB(3),
          .total = MiB(4),
          .peak = MiB(5),
          .predicted = MiB(6),
          .predicted_reserved = MiB(8),
          .needed = MiB(7),
          .plan = MemoryPlan{.effective_batch = 8, .micro_batch = 2},
          .step = 9,
          .resident = MiB(10),
          .growth = MiB(11),
          .growth_stage = "training step",
          .sequence = 12};
}

MemoryReport FullMemoryReport() {
  return {.baseline = MiB(1),
          .live_peak = MiB(2),
          .reserved_peak = MiB(3),
          .device_peak = MiB(4),
          .limit = MiB(5),
          .peak_phase = "backward",
          .num_ooms = 6,
          .num_replans = 7,
          .growth = MiB(8),
          .growth_stage = "evaluation"};
}

TrainerJob FullTrainerJob() {
  return {.study = "criteria",
          .trial = TrialNumber{12},
          .attempt = AttemptNumber{2},
          .task = {.params = {{"train.lr", 3e-5}, {"train.batch_size", int64_t{16}}},
                   .trainer = {.task = "text-classification",
                               .train = "/data/train.jsonl",
                               .validation = "/data/valid.jsonl",
                               .epochs = 4,
                               .model_init = "random",
                               .measure_every_steps = 50,
                               .labels = {"no", "yes"}},
                   .memory = {.policy = MemoryPolicy::kStrict, .allow_checkpointing = true},
                   .objective = {.metric = "loss", .direction = Direction::kMinimize},
                   .admission = false,
                   .limit = GiB(8),
                   .plan = {.effective_batch = 16, .micro_batch = 8},
                   .predicted = GiB(5),
                   .seed = std::numeric_limits<uint64_t>::max()},
          .model_name = "bert-base-uncased",
          .model_path = "/models/bert-base-uncased",
          .device = "cuda:0",
          .output_dir = "/out",
          .checkpoints = {.folder = "/checkpoints/s/000012",
                          .every_steps = 100,
                          .every = absl::Minutes(10),
                          .quota = GiB(20)}};
}

WorkerFacts FullWorkerFacts() {
  WorkerFacts facts;
  facts.worker = "host:gpu0";
  facts.instance_key = "0123";
  facts.version = "0.1.0";
  facts.torch_build = "2.11.0+cu130";
  facts.trainer = "hpo-trainer";
  facts.plans = false;
  facts.device = {.kind = "cuda",
                  .name = "NVIDIA H200",
                  .uuid = "GPU-1",
                  .driver = "580",
                  .total = GiB(140),
                  .base = MiB(500),
                  .workspace = MiB(32),
                  .source = "measured",
                  .torch_build = "2.11.0+cu130",
                  .capability = "9.0",
                  .attention = "efficient",
                  .allocator = "expandable_segments:True",
                  .threads = 3,
                  .multiprocessors = 132,
                  .threads_per_multiprocessor = 2048};
  facts.capacity = GiB(139);
  facts.models = {{.name = "bert-base-uncased",
                   .shape = *KnownModelShape("bert-base-uncased"),
                   .digest = "aa",
                   .tokenizer_digest = "bb",
                   .has_weights = true}};
  facts.data_sets = {{.name = "train.jsonl",
                      .digest = "cc",
                      .rows = 3,
                      .labels = {"no", "yes"},
                      .multi_label = true,
                      .pairs = true,
                      .lengths = {{"bb", {{12, 2}, {90, 1}}}}}};
  facts.serves = {{"a", "b"}};
  facts.process = {
      .boot_id = "b00t", .namespaces = "pid:[1] time:[2]", .pid = 17, .start_ticks = 4711};
  return facts;
}

}  // namespace hpo
