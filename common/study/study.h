// A study as its file states it. Parsed by common/study_file/study_file.h, stored by the server as
// canonical JSON, read by every layer. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/space/search_space.h"
#include "common/study/metric_constraint.h"
#include "common/study/pruner_spec.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo {

enum class Direction { kMinimize, kMaximize };

struct Objective {
  std::string metric;
  Direction direction = Direction::kMaximize;
  bool operator==(const Objective&) const = default;
};

// More than one host has.
inline constexpr int64_t kMostGpus = 256;

// What every trial of the study trains, apart from its parameters.
struct TrainerSpec {
  std::string task = "text-classification";
  // File names, looked up in the worker's --data folder (absolute paths are taken as they are).
  std::string train;
  std::string validation;
  int64_t epochs = 3;
  // "pretrained": weights must be in the model's folder. "random": trained from scratch.
  std::string model_init = "pretrained";
  // Optimizer steps between measurements on the validation data; 0: at each epoch's end only.
  int64_t measure_every_steps = 0;
  // Names of the labels, in order; empty: taken from the training data, sorted.
  std::vector<std::string> labels;
  // Values for parameters that the space does not search, e.g. {"train.lr": 3e-5}. Same names.
  ParamMap defaults;
  // A program of the user's own, its words with places for a trial's values ("{train.lr}"), and the
  // folder it runs in; empty: the worker's. Only workers that allow it run it.
  std::vector<std::string> command;
  std::string workdir;
  // GPUs of one host that each trial trains on.
  int64_t gpus = 1;
  bool operator==(const TrainerSpec&) const = default;
};

// Ends a study whose best trial is as good as any that is left, by its model's word
// (sampler/gp/regret_bound.h).
struct RegretBound {
  // What the best trial may be worse than the best there is, in the objective's unit; nullopt: as
  // much as one configuration differs from run to run, by the model's noise.
  std::optional<double> gap;
  bool operator==(const RegretBound&) const = default;
};

// The study ends when any of trials, wall_clock, no_progress and regret_bound is used up or its
// target is reached, and fails by the failures that it allows; nullopt: unlimited.
struct Budget {
  // Trials that reach a terminal state (demonstration trials are not counted).
  std::optional<int64_t> trials;
  // Time during which at least one worker held a trial.
  std::optional<absl::Duration> wall_clock;
  // Of one trial, its attempts together, while a worker held it. A trial that reaches it is stopped
  // and pruned ("time limit") with what it has.
  std::optional<absl::Duration> trial_wall_clock;
  // Trials that may end without one that improves the study (sampler/factory/termination.h).
  std::optional<int64_t> no_progress;
  std::optional<RegretBound> regret_bound;
  // The study ends once a feasible trial has completed with this value of its objective, or a
  // better one.
  std::optional<double> target;
  // Trials that may fail before the first one completes or is pruned; 0: any number.
  int64_t failures_in_a_row = 5;
  // The share of failed ones among trials that ended, from the tenth on; nullopt: any.
  std::optional<double> failed_share;
  bool operator==(const Budget&) const = default;
};

enum class MemoryPolicy {
  kPlan,    // micro-batch is chosen so that the trial fits; the effective batch is kept
  kStrict,  // the batch size is literal
  kOff,     // no estimate, no admission; OOM still handled
};

// What happens before a configuration that is not known to fit is given to a GPU.
enum class MemoryPreflight {
  kNone,
  kDryRun,  // workers measure its required memory on an emulated GPU (docs/dry-run.md)
};

struct MemorySpec {
  MemoryPolicy policy = MemoryPolicy::kPlan;
  // Bytes kept free of the capacity; nullopt: 2 %, at least 256 MiB on a GPU and 0 on a CPU budget.
  std::optional<Bytes> headroom;
  // Gradient checkpointing and lower precision may be planned where a micro-batch of 1 does not
  // fit.
  bool allow_checkpointing = false;
  bool allow_lower_precision = false;
  // The parameters that memory depends on, for trainers of which nothing else is known; empty:
  // whole numbers and choices (memory/learned/learned_need.h).
  std::vector<std::string> relevant;
  MemoryPreflight preflight = MemoryPreflight::kNone;
  bool operator==(const MemorySpec&) const = default;
};

struct SamplerSpec {
  std::string type = "auto";  // auto, tpe[-joint|-group|-univariate], gp, cma-es, random, qmc, grid
  uint64_t seed = 0;
  // The first trials, before there is a model (auto, tpe, gp), and how they are drawn.
  int64_t startup_trials = 10;
  std::string startup = "random";  // random | sobol
  bool operator==(const SamplerSpec&) const = default;
};

struct StudySpec {
  std::string name;
  std::vector<Objective> objectives;
  TrainerSpec trainer;
  Budget budget;
  MemorySpec memory;
  SamplerSpec sampler;
  PrunerSpec pruner;
  SearchSpace space;
  // Models treated as heavy whatever their size (heavy also means >= 250 M parameters).
  std::vector<std::string> heavy_models;
  // Earlier studies of the same server that the sampler starts from (sampler/priors/prior_study.h).
  std::vector<std::string> warm_start;
  // What a completed trial must keep to be the best one; each metric at most once.
  std::vector<MetricConstraint> constraints;
  bool operator==(const StudySpec&) const = default;
};

// "minimize", "maximize"; "plan", "strict", "off".
absl::string_view Name(Direction direction);
absl::string_view Name(MemoryPolicy policy);

// Of all that its trials have: the space's, and those with a default for all trials.
std::vector<std::string> ParameterNames(const StudySpec& spec);

// Cross-field checks on top of ValidateSpace: name, at least one objective, known types.
absl::Status ValidateStudy(const StudySpec& spec);

}  // namespace hpo
