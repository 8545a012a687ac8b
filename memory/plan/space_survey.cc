#include "memory/plan/space_survey.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/study/trial.h"
#include "common/threads/parallel.h"
#include "memory/plan/space_cut.h"
#include "memory/plan/space_walk.h"

namespace hpo::memory {
namespace {

constexpr uint64_t kSurveyStream = 0x5375'7276'6579;

// ---- Needs
// --------------------------------------------------------------------------------------

// What a need grows with.
struct NeedSizes {
  int64_t rows = 0;
  int64_t tokens = 0;             // tok.max_length
  std::array<int64_t, 3> head{};  // 0: there is no such layer

  bool AreNoLargerThan(const NeedSizes& other) const {
    return rows <= other.rows && tokens <= other.tokens && head[0] <= other.head[0] &&
           head[1] <= other.head[1] && head[2] <= other.head[2];
  }
};

// What must be free for one plan of a configuration, margin included.
struct PlanNeed {
  MemoryPlan plan;
  NeedSizes sizes;
  FitDecider::Range range;  // one value where it is known

  bool IsKnown() const { return range.least == range.most; }
  bool IsOpenFor(Bytes usable) const { return range.least <= usable && usable < range.most; }
};

struct Configuration {
  ParamMap params;
  bool known = false;
  PlanNeed literal;  // at its word
  PlanNeed rows;     // at micro-batch 1
  // By card.
  std::vector<bool> strict_fits;
  std::vector<bool> plan_fits;

  const std::vector<bool>& Fits(MemoryPolicy policy) const {
    return policy == MemoryPolicy::kStrict ? strict_fits : plan_fits;
  }
};

// What a bound depends on. Of the equal parts of an effective batch but the first there is one
// (LargestPasses), so that it is that of two parts.
struct BoundKey {
  std::string model;
  TrainingConfig config;
  MemoryPlan plan;
  auto operator<=>(const BoundKey&) const = default;

  static BoundKey Of(const ParamMap& params, TrainingConfig config, MemoryPlan plan) {
    plan.effective_batch = std::min(plan.effective_batch, 2 * plan.micro_batch);
    config.batch_size = plan.micro_batch;
    config.grad_accum = 1;
    return {FindString(params, kModelNameParameter).value_or(""), config, plan};
  }
};

// Replays only what bounds leave open. Needs grow with rows, tokens and the layers of the head:
// what is no larger in any than one that was replayed is taken to need no more, what is no smaller
// no less.
class Measurer {
 public:
  Measurer(const StudySpec& study, const FitDecider& decider) : study_(study), decider_(decider) {}

  absl::StatusOr<Configuration> Measure(const ParamMap& params) {
    Configuration measured{.params = params};
    HPO_ASSIGN_OR_RETURN(const TrainingConfig config, TrainingConfigOf(params, study_.trainer));
    HPO_ASSIGN_OR_RETURN(measured.literal, Bound(params, config, LiteralPlan(config)));
    measured.rows = measured.literal;
    measured.known = measured.literal.range.most > Bytes{};
    MemoryPlan rows = LiteralPlan(config);
    rows.micro_batch = 1;
    rows.checkpointing = rows.checkpointing || study_.memory.allow_checkpointing;
    if (study_.memory.allow_lower_precision && rows.precision == Precision::kFloat32) {
      rows.precision = Precision::kBfloat16;
    }
    if (!measured.known || rows == measured.literal.plan) return measured;
    HPO_ASSIGN_OR_RETURN(measured.rows, Bound(params, config, rows));
    return measured;
  }

  // For one more card.
  absl::Status DecideFor(Bytes card, std::vector<Configuration>& configurations) {
    const Bytes usable = UsableBytes(card, decider_.device(), decider_.memory());
    HPO_RETURN_IF_ERROR(Close(&Configuration::literal, usable, configurations));
    HPO_RETURN_IF_ERROR(Close(&Configuration::rows, usable, configurations));
    for (Configuration& configuration : configurations) {
      const bool strict = configuration.literal.range.most <= usable;
      configuration.strict_fits.push_back(strict);
      configuration.plan_fits.push_back(strict || configuration.rows.range.most <= usable);
    }
    return absl::OkStatus();
  }

  absl::Status Know(const ParamMap& params, PlanNeed& need) {
    return KnowIn(replayed_[GroupOf(params, need)], params, need);
  }

  // By those that were replayed.
  void Narrow(const ParamMap& params, PlanNeed& need) const {
    const auto found = replayed_.find(GroupOf(params, need));
    if (found != replayed_.end()) NarrowBy(found->second, need);
  }

 private:
  struct Open {
    const ParamMap* params;
    PlanNeed* need;
  };

  static void NarrowBy(const std::vector<PlanNeed>& replayed, PlanNeed& need) {
    if (need.IsKnown()) return;
    FitDecider::Range range = need.range;
    for (const PlanNeed& other : replayed) {
      if (other.sizes.AreNoLargerThan(need.sizes)) {
        range.least = std::max(range.least, other.range.least);
      }
      if (need.sizes.AreNoLargerThan(other.sizes)) {
        range.most = std::min(range.most, other.range.most);
      }
    }
    if (range.least <= range.most) need.range = range;
  }

  absl::Status KnowIn(std::vector<PlanNeed>& replayed, const ParamMap& params,
                      PlanNeed& need) const {
    if (need.IsKnown()) return absl::OkStatus();
    HPO_ASSIGN_OR_RETURN(const auto planned, decider_.Estimate(params, need.plan));
    need.range.least = need.range.most = RequiredBytes(*planned);
    replayed.push_back(need);
    return absl::OkStatus();
  }

  // What needs are compared within.
  static ParamMap GroupOf(ParamMap params, const PlanNeed& need) {
    for (const char* const size : {kMaxLengthParameter, kBatchSizeParameter, kGradAccumParameter,
                                   "head.layers", "head.size_1", "head.size_2", "head.size_3"}) {
      params.erase(size);
    }
    params["several parts"] = need.plan.NumParts() > 1;
    return params;
  }

  // 0 where nothing is known.
  absl::StatusOr<PlanNeed> Bound(const ParamMap& params, const TrainingConfig& config,
                                 const MemoryPlan& plan) {
    PlanNeed need{.plan = plan,
                  .sizes = {.rows = plan.micro_batch, .tokens = config.max_length},
                  .range = {}};
    std::copy_n(config.head_sizes, config.head_layers, need.sizes.head.begin());
    const BoundKey key = BoundKey::Of(params, config, plan);
    auto known = bounds_.find(key);
    if (known == bounds_.end()) {
      HPO_ASSIGN_OR_RETURN(const auto range, decider_.RequiredRange(params, plan));
      known = bounds_.emplace(key, range.value_or(FitDecider::Range())).first;
    }
    need.range = known->second;
    return need;
  }

  absl::Status Close(PlanNeed Configuration::*plan, Bytes usable,
                     std::vector<Configuration>& configurations) {
    std::map<ParamMap, std::vector<Open>> by_group;
    for (Configuration& configuration : configurations) {
      PlanNeed& need = configuration.*plan;
      if (!need.IsOpenFor(usable)) continue;
      by_group[GroupOf(configuration.params, need)].push_back({&configuration.params, &need});
    }
    // A group's replays say nothing of another's.
    std::vector<std::pair<std::vector<Open>*, std::vector<PlanNeed>*>> groups;
    for (auto& [group, open] : by_group) groups.emplace_back(&open, &replayed_[group]);
    std::vector<absl::Status> closed(groups.size());
    ForEachInParallel(groups.size(), [&](size_t i) {
      std::vector<Open>& open = *groups[i].first;
      std::stable_sort(open.begin(), open.end(), [](const Open& a, const Open& b) {
        return a.need->range.most < b.need->range.most;
      });
      closed[i] = CloseFromMiddle(open, usable, *groups[i].second);
    });
    for (const absl::Status& status : closed) HPO_RETURN_IF_ERROR(status);
    return absl::OkStatus();
  }

  // From the middle, so that one replay decides many.
  absl::Status CloseFromMiddle(std::span<Open> open, Bytes usable,
                               std::vector<PlanNeed>& replayed) const {
    if (open.empty()) return absl::OkStatus();
    const size_t middle = open.size() / 2;
    const auto [params, need] = open[middle];
    NarrowBy(replayed, *need);
    if (need->IsOpenFor(usable)) HPO_RETURN_IF_ERROR(KnowIn(replayed, *params, *need));
    HPO_RETURN_IF_ERROR(CloseFromMiddle(open.first(middle), usable, replayed));
    return CloseFromMiddle(open.subspan(middle + 1), usable, replayed);
  }

  const StudySpec& study_;
  const FitDecider& decider_;
  std::map<BoundKey, FitDecider::Range> bounds_;
  std::map<ParamMap, std::vector<PlanNeed>> replayed_;
};

absl::StatusOr<std::vector<Configuration>> MeasureAll(Measurer& measurer, const SpaceWalk& walk,
                                                      const SurveyOptions& options, bool& sampled) {
  std::vector<Configuration> configurations;
  absl::Status status;
  const auto add = [&](const ParamMap& params) {
    absl::StatusOr<Configuration> measured = measurer.Measure(params);
    if (!measured.ok()) {
      status = measured.status();
      return false;
    }
    configurations.push_back(*std::move(measured));
    return true;
  };
  int64_t count = 0;
  sampled = !walk.All([&](const ParamMap&) { return ++count <= options.most_configurations; });
  if (!sampled) {
    walk.All(add);
  } else {
    Rng rng(options.seed, kSurveyStream);
    for (int64_t i = 0; i < options.most_configurations && status.ok(); ++i) {
      if (const std::optional<ParamMap> params = walk.Draw(rng)) add(*params);
    }
  }
  HPO_RETURN_IF_ERROR(status);
  return configurations;
}

// ---- Counts
// -------------------------------------------------------------------------------------

PolicyCount CountFor(const std::vector<Configuration>& configurations, MemoryPolicy policy,
                     size_t card) {
  PolicyCount count;
  FitTallies tallies;
  for (const Configuration& configuration : configurations) {
    if (!configuration.known) {
      ++count.unknown;
      continue;
    }
    const bool fits = configuration.Fits(policy)[card];
    ++(fits ? count.fits : count.does_not_fit);
    tallies.Count(configuration.params, fits);
  }
  count.cut = tallies.BestCut();
  return count;
}

// ---- By model
// -----------------------------------------------------------------------------------

// The least, or the most, that any of `configurations` needs under one of its plans; those whose
// bounds rule them out are not replayed.
absl::StatusOr<Bytes> Extreme(Measurer& measurer, const std::vector<Configuration*>& configurations,
                              PlanNeed Configuration::*plan, bool most) {
  std::vector<Configuration*> order = configurations;
  std::sort(order.begin(), order.end(), [&](const Configuration* a, const Configuration* b) {
    const FitDecider::Range& left = (a->*plan).range;
    const FitDecider::Range& right = (b->*plan).range;
    return most ? left.most > right.most : left.least < right.least;
  });
  std::optional<Bytes> found;
  for (Configuration* const configuration : order) {
    PlanNeed& need = configuration->*plan;
    const auto is_out = [&] {
      return found.has_value() && (most ? need.range.most <= *found : need.range.least >= *found);
    };
    if (is_out()) break;
    measurer.Narrow(configuration->params, need);
    if (is_out()) continue;
    HPO_RETURN_IF_ERROR(measurer.Know(configuration->params, need));
    const Bytes known = need.range.most;
    found = !found.has_value() ? known : most ? std::max(*found, known) : std::min(*found, known);
  }
  return found.value_or(Bytes{});
}

absl::StatusOr<ModelSurvey> SurveyModel(Measurer& measurer, const std::string& name,
                                        const std::vector<Configuration*>& configurations,
                                        size_t num_cards) {
  ModelSurvey model{.name = name,
                    .configurations = static_cast<int64_t>(configurations.size()),
                    .known = configurations.front()->known,
                    .strict_fits = std::vector<int64_t>(num_cards),
                    .plan_fits = std::vector<int64_t>(num_cards)};
  if (!model.known) return model;
  const auto extreme = [&](PlanNeed Configuration::*plan, bool most) {
    return Extreme(measurer, configurations, plan, most);
  };
  HPO_ASSIGN_OR_RETURN(model.smallest_literal, extreme(&Configuration::literal, false));
  HPO_ASSIGN_OR_RETURN(model.smallest_plan, extreme(&Configuration::rows, false));
  HPO_ASSIGN_OR_RETURN(model.largest_literal, extreme(&Configuration::literal, true));
  model.smallest_plan = std::min(model.smallest_plan, model.smallest_literal);
  for (const Configuration* const configuration : configurations) {
    for (size_t card = 0; card < num_cards; ++card) {
      model.strict_fits[card] += configuration->strict_fits[card] ? 1 : 0;
      model.plan_fits[card] += configuration->plan_fits[card] ? 1 : 0;
    }
  }
  return model;
}

absl::StatusOr<std::vector<ModelSurvey>> ByModel(Measurer& measurer,
                                                 std::vector<Configuration>& configurations,
                                                 size_t num_cards) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<Configuration*>> by_name;
  for (Configuration& configuration : configurations) {
    const std::string name = FindString(configuration.params, kModelNameParameter).value_or("");
    std::vector<Configuration*>& group = by_name[name];
    if (group.empty()) names.push_back(name);
    group.push_back(&configuration);
  }
  std::vector<ModelSurvey> models;
  for (const std::string& name : names) {
    HPO_ASSIGN_OR_RETURN(models.emplace_back(),
                         SurveyModel(measurer, name, by_name[name], num_cards));
  }
  return models;
}

}  // namespace

absl::StatusOr<SpaceSurvey> SurveySpace(const StudySpec& study, const FitDecider& decider,
                                        const SurveyOptions& options) {
  if (options.cards.empty()) return absl::InvalidArgumentError("expected a card, got none");
  const SpaceWalk walk(study.space);
  SpaceSurvey survey;
  Measurer measurer(study, decider);
  HPO_ASSIGN_OR_RETURN(std::vector<Configuration> configurations,
                       MeasureAll(measurer, walk, options, survey.sampled));
  if (configurations.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("study ", study.name, ": its constraints leave no configuration"));
  }
  for (const Parameter* const parameter : walk.parameters()) {
    survey.parameters.push_back(parameter->name);
  }
  survey.configurations = static_cast<int64_t>(configurations.size());
  survey.unknown = std::count_if(configurations.begin(), configurations.end(),
                                 [](const Configuration& c) { return !c.known; });
  for (size_t card = 0; card < options.cards.size(); ++card) {
    const Bytes capacity = options.cards[card];
    HPO_RETURN_IF_ERROR(measurer.DecideFor(capacity, configurations));
    survey.cards.push_back({.capacity = capacity,
                            .usable = UsableBytes(capacity, decider.device(), decider.memory()),
                            .strict = CountFor(configurations, MemoryPolicy::kStrict, card),
                            .plan = CountFor(configurations, MemoryPolicy::kPlan, card)});
  }
  HPO_ASSIGN_OR_RETURN(survey.models, ByModel(measurer, configurations, options.cards.size()));
  return survey;
}

}  // namespace hpo::memory
