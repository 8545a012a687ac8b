// Tested by tests/cli/memory/model_step_test.cc.
#include "memory/offline/model_step.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/models/task_kind.h"
#include "memory/allocator/allocation_trace.h"
#include "memory/need/calibration.h"
#include "memory/offline/described_step_trace.h"
#include "memory/offline/step_advice.h"
#include "memory/offline/step_check.h"

namespace hpo::memory {
namespace {

constexpr char kTrainer[] = "hpo-trainer";
constexpr char kCuda[] = "cuda";
// The second part of an accumulation is the first that meets gradients; the second step the first
// that meets a cache.
constexpr int64_t kModelPartsThatDiffer = 2;
constexpr int64_t kStepsToSteady = 2;
constexpr char kDefaultPrecision[] = "float32";
constexpr char kDefaultOptimizer[] = "adamw-foreach";

constexpr char kCheckpointEvery[] = "memory.checkpoint_every";
constexpr char kMomentum[] = "sgd-momentum";

// What Hugging Face's step has too.
constexpr absl::string_view kOfBothKernels[] = {
    "model.name",      "model.dropout",   "tok.max_length", "train.batch_size", "train.grad_accum",
    "train.precision", "train.optimizer", "train.momentum", "lora.rank",        "lora.alpha",
    "lora.dropout",    "lora.targets",    "lora.base",      kCheckpointEvery};

// A parameter's word, and the option's that is the same.
using SameWords = std::pair<absl::string_view, absl::string_view>;
constexpr SameWords kPrecisions[] = {{"fp32", "float32"},
                                     {"tf32", "float32"},
                                     {"bf16", "bfloat16-autocast"},
                                     {"fp16", "float16-autocast"}};
constexpr SameWords kOptimizers[] = {{"adamw", "adamw-foreach"}, {"sgd", kMomentum}};

// What the option says, or the parameter, or neither.
absl::Status Resolve(const ParamMap& params, const std::string& name, const char* option,
                     std::span<const SameWords> words, const char* otherwise, std::string& value) {
  const std::optional<std::string> word = FindString(params, name);
  if (!word.has_value()) {
    if (value.empty()) value = otherwise;
    return absl::OkStatus();
  }
  if (!value.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected none together with ", option, " ", value, ", got ", *word));
  }
  std::vector<absl::string_view> known;
  for (const auto& [from, to] : words) {
    if (*word == from) value = std::string(to);
    known.push_back(from);
  }
  if (!value.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, ": expected ", absl::StrJoin(known, " or "),
                                                 " with Hugging Face's step, got ", *word));
}

std::string OrDefault(const std::string& word, const char* otherwise) {
  return word.empty() ? otherwise : word;
}

double MarginFor(Bytes needed) {
  return MarginTable().Factor({.device_kind = kCuda, .band = BandOf(needed)});
}

// What a step may need without a margin, so that it fits `usable` with one.
Bytes WithoutMargin(Bytes usable) { return MarginTable().LargestNeed(kCuda, usable, usable); }

// The description rounds parts up to whole ones; `effective_batch` is what they make.
MemoryPlan PlanOf(const StepDescription& step, int64_t effective_batch) {
  MemoryPlan plan{.effective_batch = effective_batch, .micro_batch = step.batch};
  plan.checkpointing = step.model->techniques.checkpointing;
  if (step.precision != StepPrecision::kFloat32) {
    plan.precision = step.float16 ? Precision::kFloat16 : Precision::kBfloat16;
  }
  return plan;
}

// As SetPrecision takes it.
std::string PrecisionOf(const StepDescription& step) {
  if (step.precision == StepPrecision::kFloat32) return kDefaultPrecision;
  return absl::StrCat(step.float16 ? "float16" : "bfloat16",
                      step.precision == StepPrecision::kAutocast ? "-autocast" : "");
}

MemoryEstimate ToMemoryEstimate(const StepEstimate& estimate, Bytes base) {
  const auto of = [&estimate](MemoryClass memory_class) {
    return estimate.by_class[static_cast<size_t>(memory_class)];
  };
  return {.weights = of(MemoryClass::kWeights),
          .gradients = of(MemoryClass::kGradients),
          .optimizer = of(MemoryClass::kOptimizer),
          .activations = of(MemoryClass::kActivations) + of(MemoryClass::kTemporary),
          .workspaces = of(MemoryClass::kWorkspaces),
          .base = base,
          .live_peak = estimate.live_peak,
          .reserved_peak = estimate.reserved_peak,
          .needed_limit = estimate.device_needed,
          .peak_phase = estimate.peak_phase,
          .fragile = estimate.fragile};
}

// The effective batch in parts of one row.
StepDescription RowByRow(const StepDescription& step) {
  StepDescription rows = step;
  rows.accumulation = step.batch * step.accumulation;
  rows.batch = 1;
  return rows;
}

}  // namespace

absl::StatusOr<bool> UsesTrainer(const KernelOptions& kernels, const ModelShape& shape) {
  const bool asked = kernels.kernels == kTrainer;
  if (asked && !TrainerSupports(shape)) {
    return absl::UnimplementedError(
        absl::StrCat("--kernels: expected huggingface for family ", shape.family,
                     ", which hpo-trainer does not run, got hpo-trainer"));
  }
  const bool special = !kernels.precision.empty() || !kernels.optimizer.empty();
  if (asked && special) {
    return absl::InvalidArgumentError(
        "--kernels: hpo-trainer trains in float32 with fused AdamW; expected no --precision and no "
        "--optimizer with it");
  }
  return asked || (kernels.kernels.empty() && !special && TrainerSupports(shape));
}

absl::StatusOr<KernelOptions> WithParams(const KernelOptions& kernels, const ParamMap& params) {
  for (const auto& [name, value] : params) {
    if (std::count(std::begin(kOfBothKernels), std::end(kOfBothKernels), name) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected none, as this is a parameter of hpo-trainer alone"));
  }
  KernelOptions resolved = kernels;
  HPO_RETURN_IF_ERROR(Resolve(params, "train.precision", "--precision", kPrecisions,
                              kDefaultPrecision, resolved.precision));
  HPO_RETURN_IF_ERROR(Resolve(params, "train.optimizer", "--optimizer", kOptimizers,
                              kDefaultOptimizer, resolved.optimizer));
  if (resolved.optimizer == kMomentum && FindDouble(params, "train.momentum") == 0.0) {
    resolved.optimizer = "sgd";
  }
  if (FindInt(params, kCheckpointEvery).value_or(0) <= 1) return resolved;
  return absl::InvalidArgumentError(
      absl::StrCat(kCheckpointEvery, ": expected 0 or 1, as Hugging Face's step computes every ",
                   "layer again, got ", *FindInt(params, kCheckpointEvery)));
}

absl::StatusOr<StepDescription> MakeModelStep(const ModelFacts& model, const KernelOptions& kernels,
                                              const OfflineDevice& device,
                                              const TrainingConfig& config) {
  if (device.kind != kCuda) {
    return absl::InvalidArgumentError(
        absl::StrCat("--device: expected cuda for Hugging Face's kernels, got ", device.kind));
  }
  StepDescription step;
  step.model = DescribeModel(model.shape);
  if (kernels.task == Name(TaskKind::kTextClassification)) {
    step.model->head.kind = TaskHead::Kind::kSequenceClassification;
  }
  if (config.dropout.has_value()) {
    step.model->shape.hidden_dropout = *config.dropout;
    step.model->shape.attention_dropout = *config.dropout;
  }
  step.model->techniques = {.lora = config.lora, .checkpointing = config.checkpoint_every > 0};
  step.batch = config.batch_size;
  step.accumulation = config.grad_accum;
  step.length = config.max_length;
  step.device.base = device.profile.base;
  step.device.gemm_workspace = device.profile.workspace.count / kThreadsThatMultiply;
  absl::StatusOr<StepOptimizer> optimizer =
      OptimizerNamed(OrDefault(kernels.optimizer, kDefaultOptimizer));
  if (!optimizer.ok()) return Annotate(optimizer.status(), "--optimizer");
  step.optimizer = *optimizer;
  const absl::Status precision =
      SetPrecision(OrDefault(kernels.precision, kDefaultPrecision), step);
  if (!precision.ok()) return Annotate(precision, "--precision");
  if (absl::Status checked = CheckStep(step); !checked.ok()) return Annotate(checked, model.name);
  return step;
}

ConfigVerdict JudgeStep(const StepDescription& step, const OfflineDevice& device, Bytes card) {
  const StepEstimate estimate = EstimateStep(step);
  PlannedMemory planned;
  planned.plan = PlanOf(step, step.batch * step.accumulation);
  planned.estimate = ToMemoryEstimate(estimate, step.device.base);
  planned.margin = MarginFor(estimate.device_needed);
  ConfigVerdict verdict = VerdictOf(planned, UsableOf(device, card));
  verdict.precision = PrecisionOf(step);
  return verdict;
}

std::optional<ConfigVerdict> LargestStep(const StepDescription& step, const OfflineDevice& device,
                                         Bytes card, int64_t most) {
  StepDescription tried = step;
  tried.batch = most;
  tried.device.total = WithoutMargin(UsableOf(device, card));
  const std::optional<int64_t> largest = LargestBatch(tried);
  if (!largest.has_value()) return std::nullopt;
  tried.batch = *largest;
  return JudgeStep(tried, device, card);
}

ConfigAdvice AdviseStep(const StepDescription& step, const ParamMap& params,
                        const OfflineDevice& device, Bytes card) {
  ConfigAdvice advice;
  advice.literal = JudgeStep(step, device, card);
  const auto smallest = [&](const StepDescription& whole) {
    const Bytes needed = std::min(JudgeStep(whole, device, card).required,
                                  JudgeStep(RowByRow(whole), device, card).required);
    return CardFor(device, needed);
  };
  advice.smallest_capacity = smallest(step);
  advice.smallest_changed_capacity =
      std::min(advice.smallest_capacity, smallest(WithEveryChange(step)));
  advice.fits = advice.literal.planned.fits;
  if (advice.fits) return advice;
  StepDescription limited = step;
  limited.device.total = WithoutMargin(UsableOf(device, card));
  for (const StepChange& change : CheapestChanges(limited)) {
    ConfigVerdict verdict = JudgeStep(change.step, device, card);
    verdict.planned.plan = PlanOf(change.step, step.batch * step.accumulation);
    advice.changes.push_back({.what = change.what,
                              .cost = change.cost,
                              .params = params,
                              .verdict = std::move(verdict)});
    const ConfigVerdict& changed = advice.changes.back().verdict;
    advice.fits = changed.planned.fits;
    advice.smallest_changed_capacity =
        std::min(advice.smallest_changed_capacity, CardFor(device, changed.required));
  }
  return advice;
}

StepNeeds::StepNeeds(const StudySpec& study, const OfflineDevice& device)
    : defaults_(study.trainer.defaults), device_(device) {}

const ModelFacts* StepNeeds::Find(const std::string& name) {
  auto found = models_.find(name);
  if (found == models_.end()) {
    absl::StatusOr<ModelFacts> facts = FindModel(name);
    std::optional<ModelFacts> model;
    if (facts.ok()) model = *std::move(facts);
    found = models_.emplace(name, std::move(model)).first;
  }
  return found->second.has_value() ? &*found->second : nullptr;
}

Bytes StepNeeds::Of(const ParamMap& params, const TrainingConfig& config, const MemoryPlan& plan) {
  const std::optional<std::string> chosen = FindString(params, kModelNameParameter);
  const std::string name = chosen.value_or(FindString(defaults_, kModelNameParameter).value_or(""));
  const ModelFacts* const model = Find(name);
  if (model == nullptr) return Bytes{};
  TrainingConfig part = config;
  part.max_length = std::min(config.max_length, model->shape.max_positions);
  part.batch_size = plan.micro_batch;
  part.grad_accum = plan.NumParts() > 1 ? kModelPartsThatDiffer : 1;
  const Key key = {name, part.batch_size, part.max_length, part.dropout.value_or(-1.0),
                   part.grad_accum > 1};
  const auto [known, is_new] = known_.try_emplace(key);
  if (!is_new) return known->second;
  absl::StatusOr<StepDescription> step = MakeModelStep(*model, {}, device_, part);
  if (!step.ok()) return Bytes{};
  step->steps = kStepsToSteady;
  const Bytes reserved = Replay(TraceOfStep(*step), step->allocator).stats.reserved_peak;
  const Bytes needed = reserved + step->device.base;
  known->second = WithMargin(needed, MarginFor(needed));
  return known->second;
}

}  // namespace hpo::memory
