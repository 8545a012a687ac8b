#include "memory/plan/fit_decision.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/study/model_catalog.h"

namespace hpo::memory {
namespace {

constexpr Bytes kCapacityUnit = MiB(64);
constexpr Bytes kSmallCapacity = GiB(1);
constexpr Bytes kSmallCapacityUnit = MiB(1);
constexpr Bytes kSmallestGpuHeadroom = MiB(256);
constexpr int64_t kGpuHeadroomPercent = 2;
constexpr Bytes kLargestCapacity = GiB(1 << 20);
constexpr const char* kModelName = "model.name";
// More than any batch has.
constexpr int64_t kManyRows = int64_t{1} << 40;

const DataSetFacts* FindDataSet(const WorkerFacts& worker, const std::string& name) {
  const auto found =
      std::find_if(worker.data_sets.begin(), worker.data_sets.end(),
                   [&name](const DataSetFacts& facts) { return facts.name == name; });
  return found == worker.data_sets.end() ? nullptr : &*found;
}

// Only the longest row, the median one and the number of rows matter to memory, so that two entries
// stand for all.
LengthHistogram Condensed(const DataSetFacts* data_set, const std::string& tokenizer) {
  if (data_set == nullptr) return {};
  const auto lengths = data_set->lengths.find(tokenizer);
  if (lengths == data_set->lengths.end()) return {};
  int64_t longest = 0;
  int64_t num_rows = 0;
  for (const auto& [length, rows] : lengths->second) {
    if (rows <= 0) continue;
    longest = length;
    num_rows = std::min(kManyRows, num_rows + std::min(rows, kManyRows));
  }
  if (num_rows == 0) return {};
  LengthHistogram condensed = {{longest, 1}};
  if (num_rows > 1) condensed[MedianLength(lengths->second)] += num_rows - 1;
  return condensed;
}

// Texts by the number of their queries; empty where the worker has not counted them.
LengthHistogram QueriesOf(const DataSetFacts* data) {
  if (data == nullptr) return {};
  const auto found = data->lengths.find(kQueryCounts);
  return found == data->lengths.end() ? LengthHistogram() : found->second;
}

Workload WorkloadOf(const TrainerSpec& trainer, const WorkerFacts& worker,
                    const ModelFacts& model) {
  const DataSetFacts* const train = FindDataSet(worker, trainer.train);
  Workload workload;
  workload.task = ParseTaskKind(trainer.task).value_or(TaskKind::kTextClassification);
  if (workload.task == TaskKind::kTextRegression) workload.num_labels = 1;
  if (!trainer.labels.empty()) {
    workload.num_labels = static_cast<int64_t>(trainer.labels.size());
  } else if (train != nullptr && !train->labels.empty()) {
    workload.num_labels = static_cast<int64_t>(train->labels.size());
  }
  if (AsksQueries(workload.task)) {
    workload.num_labels += 2;  // valence and arousal
    workload.train_queries = QueriesOf(train);
    workload.validation_queries = QueriesOf(FindDataSet(worker, trainer.validation));
  }
  workload.multi_label = train != nullptr && train->multi_label;
  workload.train_lengths = Condensed(train, model.tokenizer_digest);
  workload.validation_lengths =
      Condensed(FindDataSet(worker, trainer.validation), model.tokenizer_digest);
  return workload;
}

}  // namespace

Bytes UsableBytes(Bytes capacity, const DeviceProfile& device, const MemorySpec& memory) {
  Bytes headroom;
  if (memory.headroom.has_value()) {
    headroom = *memory.headroom;
  } else if (device.kind != "cpu") {
    headroom = std::max(kSmallestGpuHeadroom, Bytes{capacity.count / 100 * kGpuHeadroomPercent});
  }
  return std::max(Bytes{}, capacity - headroom);
}

Bytes QuantizeCapacity(Bytes capacity) {
  const Bytes unit = capacity < kSmallCapacity ? kSmallCapacityUnit : kCapacityUnit;
  return std::max(Bytes{}, Bytes{capacity.count / unit.count * unit.count});
}

Bytes CapacityFor(Bytes usable, const DeviceProfile& device, const MemorySpec& memory) {
  int64_t too_small = 0;
  int64_t enough = kLargestCapacity.count >> 20;
  while (enough - too_small > 1) {
    const int64_t middle = too_small + (enough - too_small) / 2;
    (UsableBytes(MiB(middle), device, memory) >= usable ? enough : too_small) = middle;
  }
  return MiB(enough);
}

Bytes RequiredBytes(const PlannedMemory& planned) {
  return WithMargin(planned.estimate.needed_limit, planned.margin);
}

bool GoesByLearnedNeed(const MemorySpec& memory, const WorkerFacts& worker) {
  if (memory.policy == MemoryPolicy::kOff) return false;
  return !worker.plans || memory.policy == MemoryPolicy::kStrict;
}

FitDecider::FitDecider(const StudySpec& study, const WorkerFacts& worker, MemoryEvidence evidence,
                       std::shared_ptr<ReplayTable> replays)
    : trainer_(study.trainer),
      memory_(study.memory),
      device_(worker.device),
      evidence_(std::move(evidence)),
      replays_(replays != nullptr ? std::move(replays) : std::make_shared<ReplayTable>()),
      learns_(GoesByLearnedNeed(study.memory, worker)) {
  if (memory_.policy == MemoryPolicy::kOff || !worker.plans) return;
  for (const ModelFacts& model : worker.models) {
    if (!TrainerSupports(model.shape)) continue;
    models_[model.name] = EstimateInput{.model = model.shape,
                                        .config = {},
                                        .workload = WorkloadOf(study.trainer, worker, model),
                                        .device = worker.device};
  }
}

std::optional<std::string> FitDecider::KnownModelOf(const ParamMap& params) const {
  std::optional<std::string> name = FindString(params, kModelName);
  if (!name.has_value()) name = FindString(trainer_.defaults, kModelName);
  if (!name.has_value() || models_.empty() || models_.contains(*name)) {
    return models_.empty() ? std::nullopt : name;
  }
  name = FullModelName(*name);
  return models_.contains(*name) ? name : std::nullopt;
}

absl::StatusOr<std::optional<EstimateInput>> FitDecider::InputOf(const ParamMap& params) const {
  const std::optional<std::string> name = KnownModelOf(params);
  if (!name.has_value()) return std::nullopt;
  EstimateInput input = models_.at(*name);
  HPO_ASSIGN_OR_RETURN(input.config, TrainingConfigOf(params, trainer_));
  return input;
}

absl::StatusOr<std::optional<PlannedMemory>> FitDecider::Plan(const ParamMap& params,
                                                              Bytes capacity) const {
  return PlanWith(params, capacity, Effort::kToKnow);
}

absl::StatusOr<std::optional<PlannedMemory>> FitDecider::PlanWith(const ParamMap& params,
                                                                  Bytes capacity,
                                                                  Effort effort) const {
  HPO_ASSIGN_OR_RETURN(const std::optional<EstimateInput> input, InputOf(params));
  if (!input.has_value()) return std::nullopt;
  return PlanWithMargin(*input, UsableBytes(capacity, device_, memory_), effort);
}

double FitDecider::MarginOf(const MemoryEstimate& estimate) const {
  return evidence_.margins.Factor(ClassOf(estimate, device_.kind));
}

// A CPU's bound is close enough, and what calibration there has scored.
absl::StatusOr<MemoryEstimate> FitDecider::Predict(const EstimateInput& input,
                                                   const MemoryPlan& plan) const {
  return device_.kind == "cpu" ? EstimateMemory(input, plan) : replays_->Replay(input, plan);
}

// Plans within ever less, until the plan's need fits with the margin of its own class. On a card an
// estimate that fits is a replay already.
absl::StatusOr<PlannedMemory> FitDecider::PlanWithMargin(const EstimateInput& input, Bytes usable,
                                                         Effort effort) const {
  const MarginTable& margins = evidence_.margins;
  Bytes limit = margins.LargestNeed(device_.kind, usable, usable);
  for (;;) {
    HPO_ASSIGN_OR_RETURN(PlannedMemory planned, PlanMemory(input, memory_, limit, replays_.get()));
    if (!planned.fits && effort == Effort::kToKnow && device_.kind != "cpu") {
      HPO_ASSIGN_OR_RETURN(planned.estimate, Predict(input, planned.plan));
    }
    planned.margin = MarginOf(planned.estimate);
    if (!planned.fits || RequiredBytes(planned) <= usable) return planned;
    limit = margins.LargestNeed(device_.kind, usable, planned.estimate.needed_limit - Bytes{1});
  }
}

absl::StatusOr<std::optional<PlannedMemory>> FitDecider::Estimate(const ParamMap& params,
                                                                  const MemoryPlan& plan) const {
  HPO_ASSIGN_OR_RETURN(const std::optional<EstimateInput> input, InputOf(params));
  if (!input.has_value()) return std::nullopt;
  PlannedMemory planned{.plan = plan, .estimate = {}, .fits = true};
  HPO_ASSIGN_OR_RETURN(planned.estimate, Predict(*input, plan));
  planned.margin = MarginOf(planned.estimate);
  return planned;
}

absl::StatusOr<std::optional<FitDecider::Range>> FitDecider::RequiredRange(
    const ParamMap& params, const MemoryPlan& plan) const {
  HPO_ASSIGN_OR_RETURN(const std::optional<EstimateInput> input, InputOf(params));
  if (!input.has_value()) return std::nullopt;
  HPO_ASSIGN_OR_RETURN(const MemoryEstimate bound, EstimateMemory(*input, plan));
  if (device_.kind != "cpu") {
    const NeedRange range = NeedRangeOf(bound);
    const double margin = evidence_.margins.LargestFactor(device_.kind, range.most);
    return Range{.least = range.least, .most = WithMargin(range.most, margin)};
  }
  const Bytes required = WithMargin(bound.needed_limit, MarginOf(bound));
  return Range{.least = required, .most = required};
}

std::optional<LearnedFit> FitDecider::Learned(const ParamMap& params, Bytes capacity) const {
  if (!learns_) return std::nullopt;
  const Bytes usable = UsableBytes(capacity, device_, memory_);
  if (evidence_.dry_runs.has_value()) {
    std::optional<LearnedFit> fit = evidence_.dry_runs->Decide(params, usable);
    if (fit.has_value() && !fit->sure && evidence_.saves_dry_runs) fit->fits = false;
    if (fit.has_value() && (fit->sure || evidence_.may_dry_run)) return fit;
  }
  return evidence_.learned.Decide(params, usable);
}

Fit FitDecider::Decide(const ParamMap& params, Bytes capacity) const {
  const absl::StatusOr<std::optional<PlannedMemory>> planned =
      PlanWith(params, capacity, Effort::kToDecide);
  if (planned.ok() && planned->has_value()) {
    Fit fit{.fits = (*planned)->fits, .needed = RequiredBytes(**planned), .plan = (*planned)->plan};
    if (!fit.fits && device_.kind != "cpu") {
      const Bytes usable = UsableBytes(capacity, device_, memory_);
      fit.needed = std::max(usable + Bytes{1}, (*planned)->estimate.needed_limit);
    }
    return fit;
  }
  Fit literal;
  if (const auto config = TrainingConfigOf(params, trainer_); config.ok()) {
    literal.plan = LiteralPlan(*config);
  }
  if (const std::optional<LearnedFit> learned = Learned(params, capacity)) {
    literal.fits = learned->fits;
    literal.needed = learned->needed;
  }
  return literal;
}

// Decisions at one capacity, by all that they depend on. Thread-safe.
class FitDecider::Frontier {
 public:
  Frontier(const FitDecider& decider, Bytes capacity) : decider_(decider), capacity_(capacity) {}

  Fit Decide(const ParamMap& params) {
    std::optional<std::string> model = decider_.KnownModelOf(params);
    const auto config = TrainingConfigOf(params, decider_.trainer_);
    if (!model.has_value() || !config.ok()) return decider_.Decide(params, capacity_);
    const Key key(*std::move(model), *config);
    const absl::MutexLock lock(&mutex_);
    if (const auto known = fits_.find(key); known != fits_.end()) return known->second;
    const Fit fit = decider_.Decide(params, capacity_);
    if (fits_.size() < kMostRemembered) fits_.emplace(key, fit);
    return fit;
  }

 private:
  using Key = std::pair<std::string, TrainingConfig>;
  static constexpr size_t kMostRemembered = 16'384;

  const FitDecider decider_;
  const Bytes capacity_;
  absl::Mutex mutex_;
  std::map<Key, Fit> fits_ ABSL_GUARDED_BY(mutex_);
};

BatchFeasibility FitDecider::At(Bytes capacity) const {
  return [frontier =
              std::make_shared<Frontier>(*this, capacity)](std::span<const ParamMap> candidates) {
    std::vector<Fit> fits;
    fits.reserve(candidates.size());
    for (const ParamMap& params : candidates) fits.push_back(frontier->Decide(params));
    return fits;
  };
}

std::string ExplainMisfit(const PlannedMemory& planned, Bytes usable) {
  const std::string margin =
      planned.margin > 0.0 ? absl::StrFormat(" and %.1f %% margin", 100.0 * planned.margin) : "";
  return absl::StrCat("needs ", FormatBytes(planned.estimate.needed_limit), margin,
                      " at micro-batch ", planned.plan.micro_batch, ", allowed ",
                      FormatBytes(usable));
}

}  // namespace hpo::memory
