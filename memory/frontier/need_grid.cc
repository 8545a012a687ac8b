#include "memory/frontier/need_grid.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/study/trial.h"
#include "common/threads/parallel.h"
#include "memory/frontier/frontier_space.h"
#include "memory/trace/training_config.h"

namespace hpo::memory {
namespace {

// Of a parameter whose effect is looked at.
constexpr size_t kProbedValues = 5;

// What is known of one configuration on one GPU.
struct Cell {
  Bytes needed;  // at its word; 0: not known
  int64_t micro_batch = 0;
  CellVerdict verdict = CellVerdict::kNotKnown;
};

// What the configuration needs by what holds for it on each GPU: the least that is enough for one
// that it fits, the most where it fits none, and more than is usable where it does not fit.
class NeedOfCell {
 public:
  void Take(const Cell& cell, Bytes usable) {
    if (cell.verdict == CellVerdict::kNotKnown) return;
    if (cell.verdict == CellVerdict::kFits) {
      enough_ = enough_ == Bytes{} ? cell.needed : std::min(enough_, cell.needed);
    } else {
      least_ = std::max(least_, usable + Bytes{1});
      most_ = std::max(most_, cell.needed);
    }
  }
  Bytes Value() const { return std::max(least_, enough_ > Bytes{} ? enough_ : most_); }

 private:
  Bytes enough_;
  Bytes most_;
  Bytes least_;
};

// Of more choices than `points`, as many at even distances.
std::vector<ParamValue> Thinned(const std::vector<ParamValue>& values, size_t points) {
  if (values.size() <= points) return values;
  std::vector<ParamValue> thinned;
  for (size_t i = 0; i < points; ++i) {
    thinned.push_back(values[points == 1 ? 0 : i * (values.size() - 1) / (points - 1)]);
  }
  return thinned;
}

std::vector<ParamValue> AxisValues(const Domain& domain, size_t points) {
  std::vector<ParamValue> values = ThinnedValues(domain, points);
  const bool are_numbers = std::all_of(values.begin(), values.end(), [](const ParamValue& value) {
    return AsNumber(value).has_value();
  });
  if (are_numbers) {
    std::sort(values.begin(), values.end(),
              [](const ParamValue& a, const ParamValue& b) { return *AsNumber(a) < *AsNumber(b); });
  }
  return Thinned(values, points);
}

bool HasSeveralValues(const Parameter& parameter) {
  return parameter.modelled && NumValues(parameter.domain).value_or(2) > 1;
}

class GridMaker {
 public:
  GridMaker(const StudySpec& study, const FitDecider& decider, const NeedGridOptions& options)
      : study_(study), decider_(decider), options_(options) {}

  absl::StatusOr<NeedGrid> Make() {
    NeedGrid grid{.x = options_.x, .y = options_.y};
    if (grid.x.empty() || grid.y.empty()) HPO_RETURN_IF_ERROR(ChooseAxes(grid));
    grid.x_values = AxisValues(study_.space.Find(grid.x)->domain, options_.points);
    grid.y_values = AxisValues(study_.space.Find(grid.y)->domain, options_.points);
    for (const Bytes capacity : options_.capacities) {
      grid.gpus.push_back({.capacity = capacity,
                           .usable = UsableBytes(capacity, decider_.device(), decider_.memory())});
    }
    const size_t width = grid.x_values.size();
    std::vector<Cells> cells(width * grid.y_values.size());
    ForEachInParallel(cells.size(), [&](size_t i) {
      cells[i] = CellsOf({{grid.x, grid.x_values[i % width]}, {grid.y, grid.y_values[i / width]}},
                         grid.gpus);
    });
    for (const Cells& of_all : cells) Add(of_all, grid);
    if (!is_known_) return WhyUnknown();
    grid.params = Complete({{grid.x, grid.x_values.front()}, {grid.y, grid.y_values.front()}});
    grid.params.erase(grid.x);
    grid.params.erase(grid.y);
    return grid;
  }

 private:
  // The configuration with these two values: whatever `when` says of them, they are in it.
  ParamMap Complete(const ParamMap& varied) const {
    ParamMap params;
    for (const Parameter& parameter : study_.space.parameters) {
      if (const auto at = varied.find(parameter.name); at != varied.end()) {
        params.insert(*at);
        continue;
      }
      if (!Holds(study_.space, parameter.when, params)) continue;
      const auto given = options_.params.find(parameter.name);
      const Domain allowed =
          AllowedDomain(study_.space, parameter, params).value_or(parameter.domain);
      params[parameter.name] = given != options_.params.end()
                                   ? Coerce(parameter.domain, given->second)
                                   : Representative(parameter, allowed);
    }
    return params;
  }

  Bytes LargestCapacity() const {
    return *std::max_element(options_.capacities.begin(), options_.capacities.end());
  }

  // About what the configuration needs, at little cost; 0: not known.
  double RoughNeed(const ParamMap& params) const {
    if (const auto config = TrainingConfigOf(params, study_.trainer); config.ok()) {
      const auto range = decider_.RequiredRange(params, LiteralPlan(*config));
      if (range.ok() && range->has_value()) return static_cast<double>((*range)->most.count);
    }
    const std::optional<LearnedFit> learned = decider_.Learned(params, LargestCapacity());
    return learned.has_value() ? static_cast<double>(learned->needed.count) : 0.0;
  }

  // By how much the parameter's values change what is needed: the largest by the smallest.
  double EffectOf(const Parameter& parameter) const {
    double least = 0.0;
    double most = 0.0;
    for (const ParamValue& value : ThinnedValues(parameter.domain, kProbedValues)) {
      const double need = RoughNeed(Complete({{parameter.name, value}}));
      if (need <= 0.0) continue;
      least = least == 0.0 ? need : std::min(least, need);
      most = std::max(most, need);
    }
    return least > 0.0 ? most / least : 1.0;
  }

  // Those of the largest effects that are not given; the first of equals.
  absl::Status ChooseAxes(NeedGrid& grid) const {
    std::vector<std::pair<double, std::string>> effects;
    for (const Parameter& parameter : study_.space.parameters) {
      const bool is_taken = parameter.name == grid.x || parameter.name == grid.y;
      if (is_taken || !HasSeveralValues(parameter)) continue;
      effects.emplace_back(EffectOf(parameter), parameter.name);
    }
    std::stable_sort(effects.begin(), effects.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    auto next = effects.begin();
    for (std::string* const axis : {&grid.x, &grid.y}) {
      if (!axis->empty()) continue;
      if (next == effects.end()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "study ", study_.name, ": expected two parameters with several values, got fewer"));
      }
      *axis = (next++)->second;
    }
    return absl::OkStatus();
  }

  // Of one configuration.
  struct Cells {
    absl::Status readable;
    std::optional<Bytes> literal;  // what is needed at its word; nullopt: no replay knows
    std::vector<Cell> by_gpu;
  };

  Cells CellsOf(const ParamMap& varied, const std::vector<NeedGridGpu>& gpus) const {
    const ParamMap params = Complete(varied);
    Cells cells;
    const absl::StatusOr<std::optional<Bytes>> replayed = LiteralNeed(params);
    cells.readable = replayed.status();
    if (replayed.ok()) cells.literal = *replayed;
    for (const NeedGridGpu& gpu : gpus) {
      cells.by_gpu.push_back(cells.literal ? Planned(params, *cells.literal, gpu)
                                           : AsLearned(params, gpu));
    }
    return cells;
  }

  void Add(const Cells& cells, NeedGrid& grid) {
    why_unreadable_.Update(cells.readable);
    NeedOfCell needed;
    for (size_t i = 0; i < grid.gpus.size(); ++i) {
      const Cell& cell = cells.by_gpu[i];
      grid.gpus[i].micro_batches.push_back(cell.micro_batch);
      grid.gpus[i].verdicts.push_back(cell.verdict);
      needed.Take(cell, grid.gpus[i].usable);
      is_known_ = is_known_ || cell.verdict != CellVerdict::kNotKnown;
    }
    grid.is_estimated = grid.is_estimated || cells.literal.has_value();
    grid.needed.push_back(cells.literal.value_or(needed.Value()));
  }

  absl::StatusOr<std::optional<Bytes>> LiteralNeed(const ParamMap& params) const {
    HPO_ASSIGN_OR_RETURN(const TrainingConfig config, TrainingConfigOf(params, study_.trainer));
    HPO_ASSIGN_OR_RETURN(const std::optional<PlannedMemory> estimated,
                         decider_.Estimate(params, LiteralPlan(config)));
    if (!estimated) return std::nullopt;
    return RequiredBytes(*estimated);
  }

  Cell Planned(const ParamMap& params, Bytes literal, const NeedGridGpu& gpu) const {
    // What fits at its word is run so.
    if (literal <= gpu.usable) {
      return {.needed = literal,
              .micro_batch = TrainingConfigOf(params, study_.trainer)->batch_size,
              .verdict = CellVerdict::kFits};
    }
    const Cell misfit{.needed = literal, .verdict = CellVerdict::kDoesNotFit};
    if (decider_.memory().policy == MemoryPolicy::kStrict) return misfit;
    const Fit fit = decider_.Decide(params, gpu.capacity);
    if (!fit.fits) return misfit;
    return {
        .needed = literal, .micro_batch = fit.plan.micro_batch, .verdict = CellVerdict::kPlanned};
  }

  Cell AsLearned(const ParamMap& params, const NeedGridGpu& gpu) const {
    const std::optional<LearnedFit> learned = decider_.Learned(params, gpu.capacity);
    if (!learned.has_value() || !learned->IsKnown()) return {};
    if (!learned->fits) return {.needed = learned->needed, .verdict = CellVerdict::kDoesNotFit};
    const auto config = TrainingConfigOf(params, study_.trainer);
    return {.needed = learned->needed,
            .micro_batch = config.ok() ? config->batch_size : 1,
            .verdict = CellVerdict::kFits};
  }

  absl::Status WhyUnknown() const {
    if (!why_unreadable_.ok()) return why_unreadable_;
    return absl::FailedPreconditionError(absl::StrCat(
        "study ", study_.name,
        ": nothing is known of the memory of these configurations: expected a model that the "
        "memory model knows, dry runs, or ",
        LearnedNeed::kFewestUses, " trials that have reported what they used"));
  }

  const StudySpec& study_;
  const FitDecider& decider_;
  const NeedGridOptions& options_;
  bool is_known_ = false;
  absl::Status why_unreadable_;  // of the first configuration that cannot be read
};

}  // namespace

absl::StatusOr<NeedGrid> NeedGridOf(const StudySpec& study, const FitDecider& decider,
                                    const NeedGridOptions& options) {
  if (options.capacities.empty()) {
    return absl::InvalidArgumentError("capacities: expected at least one GPU's memory, got none");
  }
  std::vector<std::string> names;
  for (const std::string& axis : {options.x, options.y}) {
    if (!axis.empty()) names.push_back(axis);
  }
  if (names.size() == 2 && names[0] == names[1]) {
    return absl::InvalidArgumentError(
        absl::StrCat("y: expected another parameter than x, got '", options.y, "' for both"));
  }
  for (const auto& [name, value] : options.params) names.push_back(name);
  HPO_RETURN_IF_ERROR(CheckNames(study.space, names));
  return GridMaker(study, decider, options).Make();
}

}  // namespace hpo::memory
