#include "common/memory/config_advice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/memory/largest_fitting.h"
#include "common/status.h"

namespace hpo {
namespace {

constexpr char kBatchSize[] = "train.batch_size";
constexpr char kMaxLength[] = "tok.max_length";
constexpr char kEvalMultiplier[] = "train.eval_batch_multiplier";

bool Fits(const ConfigVerdict& verdict) { return verdict.planned.fits; }

absl::StatusOr<ConfigChange> MakeChange(const FitDecider& decider, std::string what,
                                        std::string cost, ParamMap params, Bytes capacity) {
  ConfigChange change{.what = std::move(what), .cost = std::move(cost), .params = params};
  HPO_ASSIGN_OR_RETURN(change.verdict, JudgeConfig(decider, change.params, capacity));
  return change;
}

// The peak is an evaluation pass whose batch may be smaller: that changes nothing that is learnt.
absl::StatusOr<ConfigChange> ShrinkEvaluation(const FitDecider& strict, ParamMap params,
                                              Bytes capacity) {
  params[kEvalMultiplier] = int64_t{1};
  return MakeChange(strict, "evaluation batches as large as micro-batches", "slower evaluation",
                    std::move(params), capacity);
}

absl::StatusOr<ConfigChange> SplitBatch(const FitDecider& plan, ParamMap params, Bytes capacity) {
  HPO_ASSIGN_OR_RETURN(ConfigChange change,
                       MakeChange(plan, "", "the same gradients from more, smaller passes",
                                  std::move(params), capacity));
  const MemoryPlan& chosen = change.verdict.planned.plan;
  change.what = absl::StrCat("micro-batch ", chosen.micro_batch, " in ", chosen.NumParts(),
                             chosen.NumParts() == 1 ? " part" : " parts");
  return change;
}

// The longest texts, in whole paddings, with which a micro-batch fits; one padding where none does.
absl::StatusOr<ConfigChange> ShortenTexts(const FitDecider& plan, ParamMap params, int64_t length,
                                          Bytes capacity) {
  int64_t fits = 1;
  int64_t too_long = (length + kPaddingMultiple - 1) / kPaddingMultiple;
  while (too_long - fits > 1) {
    const int64_t middle = fits + (too_long - fits) / 2;
    params[kMaxLength] = middle * kPaddingMultiple;
    HPO_ASSIGN_OR_RETURN(const ConfigVerdict tried, JudgeConfig(plan, params, capacity));
    (Fits(tried) ? fits : too_long) = middle;
  }
  params[kMaxLength] = fits * kPaddingMultiple;
  return MakeChange(plan, absl::StrCat(kMaxLength, " ", fits * kPaddingMultiple),
                    "texts are cut: it learns something else", std::move(params), capacity);
}

// With the whole batch in one part, or row by row.
absl::StatusOr<Bytes> SmallestCapacity(const FitDecider& plan, const ParamMap& params) {
  HPO_ASSIGN_OR_RETURN(const ConfigVerdict rows, JudgeConfig(plan, params, Bytes{}));
  HPO_ASSIGN_OR_RETURN(const TrainingConfig config, TrainingConfigOf(params, {}));
  HPO_ASSIGN_OR_RETURN(const auto whole, plan.Estimate(params, LiteralPlan(config)));
  return CapacityFor(std::min(rows.required, RequiredBytes(*whole)), plan.device(), plan.memory());
}

}  // namespace

absl::StatusOr<ConfigVerdict> JudgeConfig(const FitDecider& decider, const ParamMap& params,
                                          Bytes capacity) {
  HPO_ASSIGN_OR_RETURN(const std::optional<PlannedMemory> planned, decider.Plan(params, capacity));
  if (!planned.has_value()) {
    return absl::NotFoundError(absl::StrCat("nothing is known of what ",
                                            FindString(params, "model.name").value_or("the model"),
                                            " needs"));
  }
  ConfigVerdict verdict{.planned = *planned,
                        .required = RequiredBytes(*planned),
                        .usable = UsableBytes(capacity, decider.device(), decider.memory())};
  verdict.planned.fits = verdict.required <= verdict.usable;
  return verdict;
}

absl::StatusOr<std::optional<ConfigVerdict>> LargestBatchSize(const FitDecider& strict,
                                                              const ParamMap& params,
                                                              Bytes capacity, int64_t most) {
  ParamMap tried_params = params;
  std::optional<ConfigVerdict> best;
  const auto fits = [&](int64_t batch_size) -> absl::StatusOr<bool> {
    tried_params[kBatchSize] = batch_size;
    HPO_ASSIGN_OR_RETURN(const ConfigVerdict tried, JudgeConfig(strict, tried_params, capacity));
    if (Fits(tried)) best = tried;
    return Fits(tried);
  };
  HPO_RETURN_IF_ERROR(LargestFitting(most, fits).status());
  return best;
}

absl::StatusOr<ConfigAdvice> AdviseConfig(const FitDecider& strict, const FitDecider& plan,
                                          const ParamMap& params, Bytes capacity) {
  ConfigAdvice advice;
  HPO_ASSIGN_OR_RETURN(advice.literal, JudgeConfig(strict, params, capacity));
  HPO_ASSIGN_OR_RETURN(advice.smallest_capacity, SmallestCapacity(plan, params));
  ConfigVerdict now = advice.literal;
  ParamMap current = params;
  const auto take = [&](ConfigChange change) {
    if (change.verdict.required >= now.required) return;
    now = change.verdict;
    current = change.params;
    advice.changes.push_back(std::move(change));
  };
  const bool wide_evaluation = FindInt(params, kEvalMultiplier).value_or(1) > 1;
  if (!Fits(now) && now.planned.estimate.peak_phase == "evaluation" && wide_evaluation) {
    HPO_ASSIGN_OR_RETURN(ConfigChange change, ShrinkEvaluation(strict, current, capacity));
    take(std::move(change));
  }
  if (!Fits(now) && now.planned.plan.micro_batch > 1) {
    HPO_ASSIGN_OR_RETURN(ConfigChange change, SplitBatch(plan, current, capacity));
    take(std::move(change));
  }
  const TrainerSpec no_defaults;
  HPO_ASSIGN_OR_RETURN(const TrainingConfig config, TrainingConfigOf(current, no_defaults));
  if (!Fits(now) && config.max_length > kPaddingMultiple) {
    HPO_ASSIGN_OR_RETURN(ConfigChange change,
                         ShortenTexts(plan, current, config.max_length, capacity));
    take(std::move(change));
  }
  advice.fits = Fits(now);
  return advice;
}

}  // namespace hpo
