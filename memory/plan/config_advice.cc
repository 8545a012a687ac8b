#include "memory/plan/config_advice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/study/trial.h"
#include "memory/plan/cheapest_changes.h"
#include "memory/plan/largest_fitting.h"

namespace hpo::memory {
namespace {

constexpr char kEvalMultiplier[] = "train.eval_batch_multiplier";
constexpr char kCheckpointEvery[] = "memory.checkpoint_every";
constexpr char kLoraBase[] = "lora.base";
constexpr char kPrecision[] = "train.precision";

absl::Status NothingKnown(const ParamMap& params) {
  return absl::NotFoundError(absl::StrCat("nothing is known of what ",
                                          FindString(params, "model.name").value_or("the model"),
                                          " needs"));
}

bool Fits(const ConfigVerdict& verdict) { return verdict.planned.fits; }

// A configuration, in micro-batches that were chosen for it or at its word.
struct TriedConfig {
  ParamMap params;
  std::optional<int64_t> micro_batch;
};

// The same with another value of one parameter; nullopt where it has that.
std::optional<TriedConfig> With(const TriedConfig& config, const char* name, ParamValue value) {
  const auto found = config.params.find(name);
  if (found != config.params.end() && found->second == value) return std::nullopt;
  TriedConfig changed = config;
  changed.params[name] = std::move(value);
  return changed;
}

// What the deciders, and all of their study's defaults, say of one configuration and its changes.
class Adviser {
 public:
  Adviser(const FitDecider& strict, const FitDecider& plan, Bytes capacity)
      : strict_(strict),
        plan_(plan),
        capacity_(capacity),
        usable_(UsableBytes(capacity, strict.device(), strict.memory())) {}

  absl::StatusOr<ConfigVerdict> Judge(const TriedConfig& config) const {
    if (!config.micro_batch.has_value()) return JudgeConfig(strict_, config.params, capacity_);
    HPO_ASSIGN_OR_RETURN(const TrainingConfig typed, Typed(config.params));
    MemoryPlan plan = LiteralPlan(typed);
    plan.micro_batch = *config.micro_batch;
    HPO_ASSIGN_OR_RETURN(const auto planned, strict_.Estimate(config.params, plan));
    if (!planned.has_value()) return NothingKnown(config.params);
    return VerdictOf(*planned, usable_);
  }

  absl::StatusOr<TriedConfig> Split(const TriedConfig& config) const {
    HPO_ASSIGN_OR_RETURN(const ConfigVerdict planned, JudgeConfig(plan_, config.params, capacity_));
    return TriedConfig{config.params, planned.planned.plan.micro_batch};
  }

  // The least that it needs: in one part, or row by row.
  absl::StatusOr<Bytes> Least(const ParamMap& params) const {
    HPO_ASSIGN_OR_RETURN(const ConfigVerdict whole, Judge({params, std::nullopt}));
    HPO_ASSIGN_OR_RETURN(const ConfigVerdict rows, Judge({params, 1}));
    return std::min(whole.required, rows.required);
  }

  Bytes CapacityOf(Bytes required) const {
    return CapacityFor(required, strict_.device(), strict_.memory());
  }

  // But for texts that are cut.
  ChangeProblem<TriedConfig> Problem() const {
    return {.kinds = {{.what = "evaluation batches as large as micro-batches",
                       .cost = "slower evaluation",
                       .apply = [this](const auto& config) { return ShrinkEvaluation(config); }},
                      {.what = "recompute every layer",
                       .cost = "a second forward of every layer",
                       .apply = [this](const auto& config) { return Recompute(config); }},
                      {.what = "frozen weights in NF4",
                       .cost = "frozen weights are rounded to 4 bits",
                       .apply = [this](const auto& config) { return Quantize(config); }},
                      {.what = "16-bit products",
                       .cost = "rounding; it is faster",
                       .apply = [this](const auto& config) { return LowerPrecision(config); }}},
            .num_free = 1,
            .judge = [this](const TriedConfig& config) -> absl::StatusOr<ChangeNeed> {
              HPO_ASSIGN_OR_RETURN(const ConfigVerdict verdict, Judge(config));
              const MemoryPlan& plan = verdict.planned.plan;
              return ChangeNeed{.needed = verdict.required,
                                .fits = Fits(verdict),
                                .micro_batch = plan.micro_batch,
                                .num_parts = plan.NumParts()};
            },
            .split = [this](const TriedConfig& config) { return Split(config); },
            .in_parts =
                [](const TriedConfig& config, int64_t micro_batch) {
                  return TriedConfig{config.params, micro_batch};
                }};
  }

 private:
  absl::StatusOr<TrainingConfig> Typed(const ParamMap& params) const {
    return TrainingConfigOf(params, strict_.trainer());
  }

  std::optional<TriedConfig> ShrinkEvaluation(const TriedConfig& config) const {
    const auto typed = Typed(config.params);
    if (!typed.ok() || typed->eval_batch_multiplier == 1) return std::nullopt;
    return With(config, kEvalMultiplier, int64_t{1});
  }
  std::optional<TriedConfig> Recompute(const TriedConfig& config) const {
    const auto typed = Typed(config.params);
    if (!typed.ok() || typed->checkpoint_every > 0) return std::nullopt;
    return With(config, kCheckpointEvery, int64_t{1});
  }
  std::optional<TriedConfig> Quantize(const TriedConfig& config) const {
    const auto typed = Typed(config.params);
    if (!typed.ok() || !typed->lora.has_value()) return std::nullopt;
    if (typed->lora->base == FrozenType::kNf4) return std::nullopt;
    return With(config, kLoraBase, std::string("nf4"));
  }
  std::optional<TriedConfig> LowerPrecision(const TriedConfig& config) const {
    const auto typed = Typed(config.params);
    if (!typed.ok() || typed->precision != Precision::kFloat32) return std::nullopt;
    return With(config, kPrecision, std::string("bf16"));
  }

  const FitDecider& strict_;
  const FitDecider& plan_;
  const Bytes capacity_;
  const Bytes usable_;
};

// The longest texts, in whole paddings, with which a micro-batch fits; one padding where none does.
absl::StatusOr<TriedConfig> ShortenTexts(const FitDecider& plan, const ParamMap& given,
                                         int64_t length, Bytes capacity) {
  ParamMap params = given;
  int64_t fits = 1;
  int64_t too_long = (length + kPaddingMultiple - 1) / kPaddingMultiple;
  while (too_long - fits > 1) {
    const int64_t middle = fits + (too_long - fits) / 2;
    params[kMaxLengthParameter] = middle * kPaddingMultiple;
    HPO_ASSIGN_OR_RETURN(const ConfigVerdict tried, JudgeConfig(plan, params, capacity));
    (Fits(tried) ? fits : too_long) = middle;
  }
  params[kMaxLengthParameter] = fits * kPaddingMultiple;
  HPO_ASSIGN_OR_RETURN(const ConfigVerdict verdict, JudgeConfig(plan, params, capacity));
  return TriedConfig{params, verdict.planned.plan.micro_batch};
}

}  // namespace

ConfigVerdict VerdictOf(const PlannedMemory& planned, Bytes usable) {
  ConfigVerdict verdict{.planned = planned, .required = RequiredBytes(planned), .usable = usable};
  verdict.planned.fits = verdict.required <= usable;
  return verdict;
}

absl::StatusOr<ConfigVerdict> JudgeConfig(const FitDecider& decider, const ParamMap& params,
                                          Bytes capacity) {
  HPO_ASSIGN_OR_RETURN(const std::optional<PlannedMemory> planned, decider.Plan(params, capacity));
  if (!planned.has_value()) return NothingKnown(params);
  return VerdictOf(*planned, UsableBytes(capacity, decider.device(), decider.memory()));
}

absl::StatusOr<std::optional<ConfigVerdict>> LargestBatchSize(const FitDecider& strict,
                                                              const ParamMap& params,
                                                              Bytes capacity, int64_t most) {
  const Bytes usable = UsableBytes(capacity, strict.device(), strict.memory());
  ParamMap tried = params;
  const auto may_fit = [&](int64_t batch_size) -> absl::StatusOr<bool> {
    tried[kBatchSizeParameter] = batch_size;
    HPO_ASSIGN_OR_RETURN(const TrainingConfig config, TrainingConfigOf(tried, strict.trainer()));
    HPO_ASSIGN_OR_RETURN(const auto range, strict.RequiredRange(tried, LiteralPlan(config)));
    if (!range.has_value()) return NothingKnown(tried);
    return range->least <= usable;
  };
  const auto fits = [&](int64_t batch_size) -> absl::StatusOr<bool> {
    tried[kBatchSizeParameter] = batch_size;
    return strict.Decide(tried, capacity).fits;
  };
  HPO_ASSIGN_OR_RETURN(const int64_t largest, LargestFitting(most, may_fit, fits));
  if (largest == 0) return std::nullopt;
  tried[kBatchSizeParameter] = largest;
  return JudgeConfig(strict, tried, capacity);
}

absl::StatusOr<ConfigAdvice> AdviseConfig(const FitDecider& strict, const FitDecider& plan,
                                          const ParamMap& params, Bytes capacity) {
  const Adviser adviser(strict, plan, capacity);
  const ChangeProblem<TriedConfig> problem = adviser.Problem();
  ConfigAdvice advice;
  HPO_ASSIGN_OR_RETURN(advice.literal, JudgeConfig(strict, params, capacity));
  HPO_ASSIGN_OR_RETURN(const Bytes least, adviser.Least(params));
  advice.smallest_capacity = adviser.CapacityOf(least);
  const TriedConfig changed = WithEveryChange(problem.kinds, TriedConfig{.params = params});
  HPO_ASSIGN_OR_RETURN(const Bytes least_changed, adviser.Least(changed.params));
  advice.smallest_changed_capacity = adviser.CapacityOf(std::min(least, least_changed));
  ConfigVerdict now = advice.literal;
  const auto take = [&](const std::string& what, const std::string& cost,
                        const TriedConfig& config) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(now, adviser.Judge(config));
    advice.changes.push_back({.what = what, .cost = cost, .params = config.params, .verdict = now});
    return absl::OkStatus();
  };
  TriedConfig current{.params = params};
  HPO_ASSIGN_OR_RETURN(const auto changes, ChangeSearch(problem, current).Run());
  for (const auto& change : changes) {
    HPO_RETURN_IF_ERROR(take(change.what, change.cost, change.config));
    advice.smallest_changed_capacity =
        std::min(advice.smallest_changed_capacity, adviser.CapacityOf(now.required));
    current = change.config;
  }
  HPO_ASSIGN_OR_RETURN(const TrainingConfig config,
                       TrainingConfigOf(current.params, strict.trainer()));
  if (!Fits(now) && config.max_length > kPaddingMultiple) {
    HPO_ASSIGN_OR_RETURN(const TriedConfig shorter,
                         ShortenTexts(plan, current.params, config.max_length, capacity));
    HPO_ASSIGN_OR_RETURN(const ConfigVerdict shortened, adviser.Judge(shorter));
    if (Fits(shortened) || shortened.required.count * 101 < now.required.count * 100) {
      HPO_RETURN_IF_ERROR(take(
          absl::StrCat(kMaxLengthParameter, " ", *FindInt(shorter.params, kMaxLengthParameter)),
          "texts are cut: it learns something else", shorter));
    }
  }
  advice.fits = Fits(now);
  return advice;
}

}  // namespace hpo::memory
