#include "common/memory/space_survey.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "common/status.h"

namespace hpo {
namespace {

constexpr const char* kMemoryParameters[] = {"model.name",       "tok.max_length",
                                             "train.batch_size", "train.grad_accum",
                                             "head.layers",      "head.size_1",
                                             "head.size_2",      "head.size_3",
                                             "model.dropout",    "train.eval_batch_multiplier"};
constexpr uint64_t kSurveyStream = 0x5375'7276'6579;

// ---- Walking the space
// -------------------------------------------------------------------------

// Names that `conditions` ask for; a model's facts are the model's.
void AddNames(const std::vector<Condition>& conditions, std::set<std::string>& names) {
  for (const Condition& condition : conditions) {
    const bool fact = condition.name == kModelClassFact || condition.name == kModelFamilyFact;
    names.insert(fact ? kModelNameParameter : condition.name);
  }
}

// In the space's order: parents before children.
std::vector<const Parameter*> RelevantParameters(const SearchSpace& space) {
  std::set<std::string> names(std::begin(kMemoryParameters), std::end(kMemoryParameters));
  for (size_t before = 0; before != names.size();) {
    before = names.size();
    for (const Parameter& parameter : space.parameters) {
      if (names.contains(parameter.name)) AddNames(parameter.when, names);
    }
    for (const Narrowing& narrowing : space.narrowings) {
      if (names.contains(narrowing.name)) AddNames(narrowing.when, names);
    }
  }
  std::vector<const Parameter*> relevant;
  for (const Parameter& parameter : space.parameters) {
    if (names.contains(parameter.name)) relevant.push_back(&parameter);
  }
  return relevant;
}

ParamValue ValueAt(const FloatDomain& domain, int64_t index) {
  return domain.step ? domain.low + static_cast<double>(index) * *domain.step : domain.high;
}
ParamValue ValueAt(const IntDomain& domain, int64_t index) {
  return domain.low + index * domain.step;
}
ParamValue ValueAt(const CategoricalDomain& domain, int64_t index) {
  return domain.choices[static_cast<size_t>(index)];
}

class SpaceWalk {
 public:
  explicit SpaceWalk(const SearchSpace& space)
      : space_(space), parameters_(RelevantParameters(space)) {}

  const std::vector<const Parameter*>& parameters() const { return parameters_; }

  // Every configuration, until `visit` returns false. False: it did.
  template <typename Visit>
  bool All(const Visit& visit) const {
    ParamMap params;
    return From(0, params, visit);
  }

  // One configuration, each value as likely as the others; nullopt where constraints left nothing
  // to one of its parameters.
  std::optional<ParamMap> Draw(Rng& rng) const {
    ParamMap params;
    for (const Parameter* const parameter : parameters_) {
      if (!Holds(space_, parameter->when, params)) continue;
      const std::optional<Domain> allowed = AllowedDomain(space_, *parameter, params);
      if (!allowed.has_value()) return std::nullopt;
      const auto count = static_cast<uint64_t>(NumValues(*allowed).value_or(1));
      params[parameter->name] = Value(*allowed, static_cast<int64_t>(rng.Below(count)));
    }
    return params;
  }

 private:
  static ParamValue Value(const Domain& domain, int64_t index) {
    return std::visit([index](const auto& held) { return ValueAt(held, index); }, domain);
  }

  template <typename Visit>
  bool From(size_t index, ParamMap& params, const Visit& visit) const {
    if (index == parameters_.size()) return visit(params);
    const Parameter& parameter = *parameters_[index];
    if (!Holds(space_, parameter.when, params)) return From(index + 1, params, visit);
    const std::optional<Domain> allowed = AllowedDomain(space_, parameter, params);
    if (!allowed.has_value()) return true;
    const int64_t count = NumValues(*allowed).value_or(1);
    for (int64_t i = 0; i < count; ++i) {
      params[parameter.name] = Value(*allowed, i);
      if (!From(index + 1, params, visit)) return false;
    }
    params.erase(parameter.name);
    return true;
  }

  const SearchSpace& space_;
  const std::vector<const Parameter*> parameters_;
};

// ---- Needs
// --------------------------------------------------------------------------------------

// What must be free for one plan of a configuration, margin included.
struct PlanNeed {
  MemoryPlan plan;
  FitDecider::Range range;  // one value where it is known
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

// Replays only what bounds leave open.
class Measurer {
 public:
  Measurer(const StudySpec& study, const FitDecider& decider, const SurveyOptions& options)
      : study_(study), decider_(decider), options_(options) {}

  absl::StatusOr<Configuration> Measure(const ParamMap& params) const {
    Configuration measured{.params = params};
    HPO_ASSIGN_OR_RETURN(const TrainingConfig config, TrainingConfigOf(params, study_.trainer));
    HPO_ASSIGN_OR_RETURN(measured.literal, Bound(params, config, LiteralPlan(config)));
    measured.rows = measured.literal;
    measured.known = measured.literal.range.most > Bytes{};
    MemoryPlan rows = LiteralPlan(config);
    rows.micro_batch = 1;
    if (!measured.known || rows == measured.literal.plan) return measured;
    HPO_ASSIGN_OR_RETURN(measured.rows, Bound(params, config, rows));
    return measured;
  }

  absl::Status DecideFor(Bytes card, Configuration& configuration) const {
    const Bytes usable = UsableBytes(card, decider_.device(), decider_.memory());
    HPO_ASSIGN_OR_RETURN(const bool strict,
                         IsWithin(configuration.params, usable, configuration.literal));
    HPO_ASSIGN_OR_RETURN(const bool rows,
                         strict ? absl::StatusOr<bool>(true)
                                : IsWithin(configuration.params, usable, configuration.rows));
    configuration.strict_fits.push_back(strict);
    configuration.plan_fits.push_back(rows);
    return absl::OkStatus();
  }

  absl::Status Know(const ParamMap& params, PlanNeed& need) const {
    if (need.range.least == need.range.most) return absl::OkStatus();
    HPO_ASSIGN_OR_RETURN(const auto planned, decider_.Estimate(params, need.plan));
    need.range.least = need.range.most = RequiredBytes(*planned);
    return absl::OkStatus();
  }

 private:
  // 0 where nothing is known.
  absl::StatusOr<PlanNeed> Bound(const ParamMap& params, const TrainingConfig& config,
                                 const MemoryPlan& plan) const {
    PlanNeed need{.plan = plan, .range = {}};
    HPO_ASSIGN_OR_RETURN(const auto range, decider_.RequiredRange(params, plan));
    if (range.has_value()) {
      need.range = *range;
    } else if (options_.otherwise) {
      need.range.least = need.range.most = options_.otherwise(params, config, plan);
    }
    return need;
  }

  absl::StatusOr<bool> IsWithin(const ParamMap& params, Bytes usable, PlanNeed& need) const {
    if (need.range.most <= usable) return true;
    if (need.range.least > usable) return false;
    HPO_RETURN_IF_ERROR(Know(params, need));
    return need.range.most <= usable;
  }

  const StudySpec& study_;
  const FitDecider& decider_;
  const SurveyOptions& options_;
};

absl::StatusOr<std::vector<Configuration>> MeasureAll(const Measurer& measurer,
                                                      const SpaceWalk& walk,
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

// ---- Cuts
// ---------------------------------------------------------------------------------------

struct Tally {
  int64_t fits = 0;
  int64_t misfits = 0;
  void operator+=(const Tally& other) {
    fits += other.fits;
    misfits += other.misfits;
  }
};

// What is kept out by one cut of `name`: everything above a value, or one choice.
void AddCuts(const std::string& name, const std::map<ParamValue, Tally>& by_value,
             std::vector<SpaceCut>& cuts) {
  if (by_value.size() < 2) return;
  const auto add = [&](std::string description, const Tally& out) {
    cuts.push_back({.parameter = name,
                    .description = std::move(description),
                    .misfits_removed = out.misfits,
                    .fits_lost = out.fits});
  };
  if (!AsNumber(by_value.begin()->first).has_value()) {
    for (const auto& [value, out] : by_value) {
      add(absl::StrCat("without ", FormatParam(value)), out);
    }
    return;
  }
  Tally above = by_value.rbegin()->second;
  for (auto value = std::next(by_value.rbegin()); value != by_value.rend(); ++value) {
    add(absl::StrCat(name, " <= ", FormatParam(value->first)), above);
    above += value->second;
  }
}

std::optional<SpaceCut> BestCut(const std::vector<Configuration>& configurations,
                                MemoryPolicy policy, size_t card, int64_t misfits) {
  if (misfits == 0) return std::nullopt;
  std::map<std::string, std::map<ParamValue, Tally>> tallies;
  for (const Configuration& configuration : configurations) {
    if (!configuration.known) continue;
    const bool fits = configuration.Fits(policy)[card];
    for (const auto& [name, value] : configuration.params) {
      ++(fits ? tallies[name][value].fits : tallies[name][value].misfits);
    }
  }
  std::vector<SpaceCut> cuts;
  for (const auto& [name, by_value] : tallies) AddCuts(name, by_value, cuts);
  const auto quality = [misfits](const SpaceCut& cut) {
    return static_cast<double>(cut.misfits_removed) /
           static_cast<double>(cut.misfits_removed + cut.fits_lost + misfits);
  };
  std::optional<SpaceCut> best;
  for (SpaceCut& cut : cuts) {
    cut.misfits_left = misfits - cut.misfits_removed;
    if (quality(cut) > (best ? quality(*best) : 0.0)) best = cut;
  }
  return best;
}

PolicyCount CountFor(const std::vector<Configuration>& configurations, MemoryPolicy policy,
                     size_t card) {
  PolicyCount count;
  for (const Configuration& configuration : configurations) {
    if (!configuration.known) continue;
    ++(configuration.Fits(policy)[card] ? count.fits : count.does_not_fit);
  }
  count.cut = BestCut(configurations, policy, card, count.does_not_fit);
  return count;
}

// ---- By model
// -----------------------------------------------------------------------------------

// The least, or the most, that any of `configurations` needs under one of its plans; those whose
// bounds rule them out are not replayed.
absl::StatusOr<Bytes> Extreme(const Measurer& measurer,
                              const std::vector<Configuration*>& configurations,
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
    const bool is_out =
        found.has_value() && (most ? need.range.most <= *found : need.range.least >= *found);
    if (is_out) break;
    HPO_RETURN_IF_ERROR(measurer.Know(configuration->params, need));
    const Bytes known = need.range.most;
    found = !found.has_value() ? known : most ? std::max(*found, known) : std::min(*found, known);
  }
  return found.value_or(Bytes{});
}

absl::StatusOr<ModelSurvey> SurveyModel(const Measurer& measurer, const std::string& name,
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

absl::StatusOr<std::vector<ModelSurvey>> ByModel(const Measurer& measurer,
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
  const Measurer measurer(study, decider, options);
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
    for (Configuration& configuration : configurations) {
      HPO_RETURN_IF_ERROR(measurer.DecideFor(capacity, configuration));
    }
    survey.cards.push_back({.capacity = capacity,
                            .usable = UsableBytes(capacity, decider.device(), decider.memory()),
                            .strict = CountFor(configurations, MemoryPolicy::kStrict, card),
                            .plan = CountFor(configurations, MemoryPolicy::kPlan, card)});
  }
  HPO_ASSIGN_OR_RETURN(survey.models, ByModel(measurer, configurations, options.cards.size()));
  return survey;
}

}  // namespace hpo
