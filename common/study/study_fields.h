// The fields of a study: what is stored of it (study_json.h), what its file may hold (study_file.h)
// and what docs/study-file.md says of each. Ranges are words here; ValidateStudy has them.
#pragma once

#include <string>
#include <vector>

#include "common/base/fields/json_fields.h"
#include "common/space/space_fields.h"
#include "common/study/study.h"

namespace hpo {

template <>
struct NamesOf<Direction> {
  static constexpr const char* kNames[] = {"minimize", "maximize"};
  static constexpr char kMeans[] = "a direction";
  static constexpr bool kInFiles = true;
};
template <>
struct NamesOf<MemoryPolicy> {
  static constexpr const char* kNames[] = {"plan", "strict", "off"};
  static constexpr char kMeans[] = "a memory policy";
  static constexpr bool kInFiles = true;
};
template <>
struct NamesOf<MemoryPreflight> {
  static constexpr const char* kNames[] = {"none", "dry-run"};
  static constexpr char kMeans[] = "a preflight";
  static constexpr bool kInFiles = true;
};

// A number, or "auto".
template <>
struct JsonForm<RegretBound> {
  static nlohmann::json Write(const RegretBound& bound);
  static absl::StatusOr<RegretBound> Read(const nlohmann::json& json);
};

void VisitFields(Is<Objective> auto& objective, auto visit) {
  visit({"metric", kMandatory, "",
         "a metric that the trainer reports; those of each task: [training.md](training.md#tasks)"},
        objective.metric);
  visit({"direction", kMandatory, "", "`minimize` or `maximize`"}, objective.direction);
}

void VisitFields(Is<MetricConstraint> auto& constraint, auto visit) {
  visit({"metric", kMandatory, "", "a metric that trials report with their result"},
        constraint.metric);
  visit({"at_least", kIfSaid, "", "one of these, or both"}, constraint.at_least);
  visit({"at_most", kIfSaid, "", "one of these, or both"}, constraint.at_most);
}

void VisitFields(Is<TrainerSpec> auto& trainer, auto visit) {
  visit(
      {"command", kAlways, "",
       "a program of your own, for workers with `--allow-commands` and for `hpo run`: `[python, "
       "train.py, --lr, \"{train.lr}\"]`, or one text for `/bin/sh` ([programs.md](programs.md)); "
       "the `task` is then `custom`"},
      trainer.command);
  visit({"workdir", kAlways, "", "where it runs", "the worker's folder"}, trainer.workdir);
  visit(InJob({"gpus", kIfSaid, "1 to 256",
               "GPUs of one host that each trial trains on, with a program of your own "
               "([programs.md](programs.md#several-gpus))"},
              {.presence = kIfSaid}),
        trainer.gpus);
  visit(
      InJob({"task", kRequired, "",
             "also `text-regression`, `language-modeling`, `multi-query`, `multi-query-spans`; any "
             "name with a trainer of your own"}),
      trainer.task);
  constexpr const char* kUnlessCustom = "required, but with a task of your own";
  visit(InJob({"train", kRequired, "", "a file, below the worker's `--data` folder or absolute",
               kUnlessCustom},
              {.key = "train_path", .wire = "train", .presence = kRequired}),
        trainer.train);
  visit(InJob({"validation", kRequired, "", "a file, as `train`", kUnlessCustom},
              {.key = "validation_path", .wire = "validation", .presence = kRequired}),
        trainer.validation);
  visit(
      InJob({"epochs", kRequired, "≥ 1", "passes over the training data"}, {.presence = kRequired}),
      trainer.epochs);
  visit(InJob({"init", kRequired, "", "`random` trains from scratch, without weights"},
              {.key = "model_init"}),
        trainer.model_init);
  visit(InJob({"measure_every_steps", kRequired, "≥ 0",
               "optimizer steps between measurements; 0: at the end of each epoch"}),
        trainer.measure_every_steps);
  visit(InJob({"labels", kRequired, "", "names of the labels, in order; `[\"no\", \"yes\"]`",
               "from the training data, sorted"}),
        trainer.labels);
  visit({"defaults", kRequired, "",
         "parameters that are not searched: `{train.precision: bf16, data.subset: 0.1}`"},
        trainer.defaults);
}

void VisitFields(Is<Budget> auto& budget, auto visit) {
  constexpr const char* kNoLimit = "no limit";
  visit({"trials", kAlways, "≥ 0",
         "trials that may end; demonstrations and imported trials are not counted", kNoLimit},
        budget.trials);
  visit({"wall_clock", kAlways, "", "time during which at least one worker held a trial; `8h`",
         kNoLimit},
        budget.wall_clock);
  visit({"trial_wall_clock", kIfSaid, "",
         "time of one trial, all its attempts; then it is PRUNED with the best it has; `2h`",
         kNoLimit},
        budget.trial_wall_clock);
  visit({"no_progress", kIfSaid, "≥ 1", "trials in a row that improve nothing; `30`", kNoLimit},
        budget.no_progress);
  visit({"regret_bound", kIfSaid, "> 0, or `auto`",
         "the study ends when the model expects nothing better than the best by more than this; "
         "`auto`: than the noise of a run; `0.002` ([sampler.md](sampler.md#when-a-study-ends))"},
        budget.regret_bound);
  visit({"target", kIfSaid, "",
         "the study ends once a feasible trial has completed with this value of its objective or a "
         "better one; what runs goes on, what is queued waits; one objective only; `0.95`"},
        budget.target);
  visit({"failures_in_a_row", kIfSaid, "≥ 0",
         "the study fails after so many FAILED trials, as long as none has completed; 0: never"},
        budget.failures_in_a_row);
  visit({"failed_share", kIfSaid, "in [0, 1)",
         "the study fails when more than this share of its trials fail, from the tenth on; `0.3`"},
        budget.failed_share);
}

void VisitFields(Is<MemorySpec> auto& memory, auto visit) {
  visit(
      InJob(
          {"policy", kRequired, "",
           "`plan` splits the effective batch so that it fits; `strict` takes the batch literally; "
           "`\"off\"` estimates nothing"},
          {.wire = "memory_policy"}),
      memory.policy);
  visit({"headroom", kAlways, "",
         "kept free of what a worker may use; `auto`: 2 %, at least 256 MiB on a GPU, nothing on a "
         "CPU",
         kAutoWord},
        memory.headroom);
  visit(InJob({"allow_checkpointing", kRequired, "",
               "a plan may compute layers again in backward, where a micro-batch of one row does "
               "not fit"}),
        memory.allow_checkpointing);
  visit(
      {"allow_lower_precision", kRequired, "", "a plan may choose bfloat16, after everything else"},
      memory.allow_lower_precision);
  visit({"relevant", kIfSaid, "",
         "the parameters that memory depends on, with a trainer of your own; `[train.batch_size, "
         "model.width]`",
         "whole numbers and choices"},
        memory.relevant);
  visit({"preflight", kIfSaid, "",
         "`dry-run`: before a configuration that is not known to fit is given to a GPU, the worker "
         "measures its required memory on an emulated one ([dry-run.md](dry-run.md#in-studies)); "
         "for PyTorch programs of your own",
         "`none`"},
        memory.preflight);
}

void VisitFields(Is<SamplerSpec> auto& sampler, auto visit) {
  visit({"type", kRequired, "",
         "`auto`, `gp`, `tpe`, `tpe-joint`, `tpe-group`, `tpe-univariate`, `cma-es`, `qmc`, `grid` "
         "or `random` ([sampler.md](sampler.md))"},
        sampler.type);
  visit({"seed", kRequired, "≥ 0", "of proposals, and of trials without a parameter `seed`"},
        sampler.seed);
  visit({"startup_trials", kRequired, "≥ 0",
         "trials before the first model (`auto`, `tpe`, `gp`, `cma-es`); at most a third of "
         "`budget.trials`, or 3"},
        sampler.startup_trials);
  visit({"startup", kAlways, "",
         "how these are drawn: `random`, or `sobol` for points of the sequence"},
        sampler.startup);
}

// Those that its type takes.
void VisitFields(Is<PrunerSpec> auto& pruner, auto visit) {
  const auto visit_taken = [&](const Field& field, auto& member) {
    if (PrunerTakes(pruner, field.key)) visit(field, member);
  };
  visit({"type", kRequired, "", "which one, see above"}, pruner.type);
  visit_taken({"wrapped", kAlways, "", "the pruner that `patient` asks once there is no progress"},
              pruner.wrapped);
  visit_taken({"startup_trials", kAlways, "≥ 0", "completed trials before the first decision"},
              pruner.startup_trials);
  visit_taken({"warmup_steps", kAlways, "≥ 0", "steps of a trial before the first decision on it"},
              pruner.warmup_steps);
  visit_taken({"interval_steps", kAlways, "≥ 1", "steps between decisions"}, pruner.interval_steps);
  visit_taken(
      {"min_trials", kAlways, "≥ 1", "completed trials that must have reported at the step"},
      pruner.min_trials);
  visit_taken({"percentile", kAlways, "0 to 100", "the best so many per cent go on"},
              pruner.percentile);
  visit_taken({"lower", kIfSaid, "", "`threshold` needs this, `upper` or both"}, pruner.lower);
  visit_taken({"upper", kIfSaid, "", "`threshold` needs this, `lower` or both"}, pruner.upper);
  visit_taken(
      {"patience", kAlways, "≥ 0", "no progress: the last `patience` + 1 reports improved nothing"},
      pruner.patience);
  visit_taken({"min_delta", kAlways, "≥ 0", "by at least this"}, pruner.min_delta);
  visit_taken({"min_resource", kIfSaid, "≥ 1",
               "steps of the first rung; `auto`: for `asha` a hundredth of the longest completed "
               "trial, for `hyperband` 1",
               kAutoWord},
              pruner.min_resource);
  visit_taken({"max_resource", kIfSaid, "≥ 1",
               "steps of the longest trial; `auto`: one more than the longest completed trial has",
               kAutoWord},
              pruner.max_resource);
  visit_taken(
      {"reduction_factor", kIfSaid, "≥ 2",
       "one of so many trials passes a rung; `auto`: 4 for `asha`, 3 for `hyperband`", kAutoWord},
      pruner.reduction_factor);
  visit_taken({"min_early_stopping_rate", kAlways, "≥ 0", "rungs that are left out at the start"},
              pruner.min_early_stopping_rate);
  visit_taken({"bootstrap_count", kAlways, "≥ 0",
               "the first so many trials of a rung stop there; needs `min_resource` (`asha`) or "
               "`max_resource` (`hyperband`)"},
              pruner.bootstrap_count);
  visit_taken({"p_threshold", kAlways, "0 to 1", "stops where the test's p is below"},
              pruner.p_threshold);
  visit_taken({"startup_steps", kAlways, "≥ 0", "steps in common before the first test"},
              pruner.startup_steps);
}

// Without its space and its constraints, which share a key in its file.
void VisitFields(Is<StudySpec> auto& study, auto visit) {
  visit({"name", kMandatory, "",
         "of the study: up to 100 letters, digits, `.`, `_`, `-`; first a letter, a digit or `_`"},
        study.name);
  visit({"objective", kMandatory, "", "what is optimized; a list is a study of several objectives"},
        study.objectives);
  visit({"trainer", kRequired, "", "what each trial trains"}, study.trainer);
  visit({"budget", kRequired, "", "when the study ends"}, study.budget);
  visit({"memory", kRequired, "", "how trials are made to fit"}, study.memory);
  visit({"sampler", kRequired, "", "what proposes trials"}, study.sampler);
  visit({"pruner", kRequired, "", "what stops trials early"}, study.pruner);
  visit({"heavy_models", kAlways, "",
         "models that count as `model.class: heavy` whatever their size; `[roberta-base]`"},
        study.heavy_models);
  visit({"warm_start", kIfSaid, "",
         "earlier studies of this server to start from; `[criteria-2025]` "
         "([sampler.md](sampler.md#warm-start))"},
        study.warm_start);
}

}  // namespace hpo
