#include "cli/model_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/memory/allocation_trace.h"
#include "common/memory/calibration.h"
#include "common/memory/described_step_trace.h"
#include "common/memory/largest_fitting.h"
#include "common/memory/step_advice.h"
#include "common/status.h"

namespace hpo {
namespace {

constexpr char kTrainer[] = "hpo-trainer";
constexpr char kCuda[] = "cuda";
// The second part of an accumulation is the first that meets gradients; the second step the first
// that meets a cache.
constexpr int64_t kPartsThatDiffer = 2;
constexpr int64_t kStepsToSteady = 2;
constexpr char kDefaultPrecision[] = "float32";
constexpr char kDefaultOptimizer[] = "adamw-foreach";

std::string OrDefault(const std::string& word, const char* otherwise) {
  return word.empty() ? otherwise : word;
}

Bytes Usable(const OfflineDevice& device, Bytes card) {
  return UsableBytes(card, {.kind = kCuda}, {.headroom = device.headroom});
}

ResidualClass ClassFor(Bytes needed, bool fragile) {
  return {.device_kind = kCuda, .band = BandOf(needed), .fragile = fragile};
}

// What a step may need without a margin, so that it fits `usable` with one.
Bytes WithoutMargin(Bytes usable) {
  return MarginTable().LargestNeed(ClassFor(usable, /*fragile=*/false), usable, usable);
}

// The description rounds parts up to whole ones; `effective_batch` is what they make.
MemoryPlan PlanOf(const StepDescription& step, int64_t effective_batch) {
  MemoryPlan plan{.effective_batch = effective_batch, .micro_batch = step.batch};
  if (step.precision != StepPrecision::kFloat32) plan.precision = Precision::kBfloat16;
  return plan;
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

absl::StatusOr<StepDescription> MakeModelStep(const ModelFacts& model, const KernelOptions& kernels,
                                              const OfflineDevice& device,
                                              const TrainingConfig& config) {
  if (device.kind != kCuda) {
    return absl::InvalidArgumentError(
        absl::StrCat("--device: expected cuda for Hugging Face's kernels, got ", device.kind));
  }
  StepDescription step;
  step.model = DescribeModel(model.shape);
  if (config.dropout.has_value()) {
    step.model->shape.hidden_dropout = *config.dropout;
    step.model->shape.attention_dropout = *config.dropout;
  }
  step.batch = config.batch_size;
  step.accumulation = config.grad_accum;
  step.length = config.max_length;
  absl::StatusOr<StepOptimizer> optimizer =
      OptimizerNamed(OrDefault(kernels.optimizer, kDefaultOptimizer));
  if (!optimizer.ok()) return Annotate(optimizer.status(), "--optimizer");
  step.optimizer = *optimizer;
  absl::StatusOr<StepPrecision> precision =
      PrecisionNamed(OrDefault(kernels.precision, kDefaultPrecision));
  if (!precision.ok()) return Annotate(precision.status(), "--precision");
  step.precision = *precision;
  if (absl::Status checked = CheckStep(step); !checked.ok()) return Annotate(checked, model.name);
  return step;
}

Basis BasisOf(const StepDescription& step, const KernelOptions& kernels) {
  return {.kernels = "Hugging Face",
          .precision = OrDefault(kernels.precision, kDefaultPrecision),
          .optimizer = OrDefault(kernels.optimizer, kDefaultOptimizer),
          .attention = step.model->shape.family == "deberta-v2" ? "written out" : "efficient",
          .device = "CUDA card, median of 35 published runs",
          .base = step.device.base,
          .workspaces = Bytes{2 * step.device.gemm_workspace}};
}

ConfigVerdict JudgeStep(const StepDescription& step, const OfflineDevice& device, Bytes card) {
  const StepEstimate estimate = EstimateStep(step);
  ConfigVerdict verdict;
  verdict.planned.plan = PlanOf(step, step.batch * step.accumulation);
  verdict.planned.estimate = ToMemoryEstimate(estimate, step.device.base);
  verdict.planned.margin = MarginTable().Factor(ClassFor(estimate.device_needed, estimate.fragile));
  verdict.required = RequiredBytes(verdict.planned);
  verdict.usable = Usable(device, card);
  verdict.planned.fits = verdict.required <= verdict.usable;
  return verdict;
}

std::optional<ConfigVerdict> LargestStep(const StepDescription& step, const OfflineDevice& device,
                                         Bytes card, int64_t most) {
  StepDescription tried = step;
  tried.device.total = WithoutMargin(Usable(device, card));
  const auto fits = [&tried](int64_t batch) -> absl::StatusOr<bool> {
    tried.batch = batch;
    return StepFits(tried);
  };
  // A layout that others of its steps do not have needs more than the margin of those that have.
  for (tried.batch = *LargestFitting(most, fits); tried.batch > 0; --tried.batch) {
    const ConfigVerdict verdict = JudgeStep(tried, device, card);
    if (verdict.planned.fits) return verdict;
  }
  return std::nullopt;
}

ConfigAdvice AdviseStep(const StepDescription& step, const ParamMap& params,
                        const OfflineDevice& device, Bytes card) {
  ConfigAdvice advice;
  advice.literal = JudgeStep(step, device, card);
  advice.smallest_capacity = CapacityFor(
      std::min(advice.literal.required, JudgeStep(RowByRow(step), device, card).required),
      {.kind = kCuda}, {.headroom = device.headroom});
  advice.fits = advice.literal.planned.fits;
  if (advice.fits) return advice;
  StepDescription limited = step;
  limited.device.total = WithoutMargin(Usable(device, card));
  for (const StepChange& change : CheapestChanges(limited)) {
    ConfigVerdict verdict = JudgeStep(change.step, device, card);
    verdict.planned.plan = PlanOf(change.step, step.batch * step.accumulation);
    advice.changes.push_back({.what = change.what,
                              .cost = change.cost,
                              .params = params,
                              .verdict = std::move(verdict)});
    advice.fits = advice.changes.back().verdict.planned.fits;
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
  part.grad_accum = plan.NumParts() > 1 ? kPartsThatDiffer : 1;
  const Key key = {name, part.batch_size, part.max_length, part.dropout.value_or(-1.0),
                   part.grad_accum > 1};
  const auto [known, is_new] = known_.try_emplace(key);
  if (!is_new) return known->second;
  absl::StatusOr<StepDescription> step = MakeModelStep(*model, {}, device_, part);
  if (!step.ok()) return Bytes{};
  step->steps = kStepsToSteady;
  const Bytes reserved = Replay(TraceOfStep(*step), step->allocator).stats.reserved_peak;
  const Bytes needed = reserved + step->device.base;
  known->second = WithMargin(needed, MarginTable().Factor(ClassFor(needed, /*fragile=*/false)));
  return known->second;
}

}  // namespace hpo
