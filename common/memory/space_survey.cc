#include "common/memory/space_survey.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/memory/calibration.h"
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

struct Configuration {
  ParamMap params;
  bool known = false;
  Bytes literal;  // at its word, with margin
  Bytes planned;  // the least that any micro-batch needs, with margin

  Bytes Need(MemoryPolicy policy) const {
    return policy == MemoryPolicy::kStrict ? literal : planned;
  }
};

// 0 where nothing is known.
absl::StatusOr<Bytes> NeedOf(const FitDecider& decider, const NeedOfPlan& otherwise,
                             const ParamMap& params, const TrainingConfig& config,
                             const MemoryPlan& plan) {
  HPO_ASSIGN_OR_RETURN(const std::optional<MemoryEstimate> estimate,
                       decider.Estimate(params, plan));
  if (!estimate.has_value()) return otherwise ? otherwise(params, config, plan) : Bytes{};
  const double margin = MarginTable().Factor(ClassOf(*estimate, decider.device().kind));
  return WithMargin(estimate->needed_limit, margin);
}

absl::StatusOr<Configuration> Measure(const StudySpec& study, const FitDecider& decider,
                                      const NeedOfPlan& otherwise, const ParamMap& params) {
  Configuration measured{.params = params};
  HPO_ASSIGN_OR_RETURN(const TrainingConfig config, TrainingConfigOf(params, study.trainer));
  MemoryPlan plan = LiteralPlan(config);
  HPO_ASSIGN_OR_RETURN(measured.literal, NeedOf(decider, otherwise, params, config, plan));
  measured.planned = measured.literal;
  measured.known = measured.literal > Bytes{};
  if (!measured.known || plan.micro_batch == 1) return measured;
  plan.micro_batch = 1;
  HPO_ASSIGN_OR_RETURN(const Bytes smallest, NeedOf(decider, otherwise, params, config, plan));
  measured.planned = std::min(measured.literal, smallest);
  return measured;
}

absl::StatusOr<std::vector<Configuration>> MeasureAll(const StudySpec& study,
                                                      const FitDecider& decider,
                                                      const SpaceWalk& walk,
                                                      const SurveyOptions& options, bool& sampled) {
  std::vector<Configuration> configurations;
  absl::Status status;
  const auto add = [&](const ParamMap& params) {
    absl::StatusOr<Configuration> measured = Measure(study, decider, options.otherwise, params);
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
                                MemoryPolicy policy, Bytes usable, int64_t misfits) {
  if (misfits == 0) return std::nullopt;
  std::map<std::string, std::map<ParamValue, Tally>> tallies;
  for (const Configuration& configuration : configurations) {
    if (!configuration.known) continue;
    const bool fits = configuration.Need(policy) <= usable;
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
                     Bytes usable) {
  PolicyCount count;
  for (const Configuration& configuration : configurations) {
    if (!configuration.known) continue;
    ++(configuration.Need(policy) <= usable ? count.fits : count.does_not_fit);
  }
  count.cut = BestCut(configurations, policy, usable, count.does_not_fit);
  return count;
}

// ---- By model
// -----------------------------------------------------------------------------------

void Count(const Configuration& configuration, const std::vector<CardSurvey>& cards,
           ModelSurvey& model) {
  const bool first = model.configurations++ == 0;
  model.known = configuration.known;
  model.strict_fits.resize(cards.size());
  model.plan_fits.resize(cards.size());
  if (!configuration.known) return;
  const auto lower = [first](Bytes& least, Bytes need) {
    least = first ? need : std::min(least, need);
  };
  lower(model.smallest_literal, configuration.literal);
  lower(model.smallest_plan, configuration.planned);
  model.largest_literal = std::max(model.largest_literal, configuration.literal);
  for (size_t i = 0; i < cards.size(); ++i) {
    if (configuration.literal <= cards[i].usable) ++model.strict_fits[i];
    if (configuration.planned <= cards[i].usable) ++model.plan_fits[i];
  }
}

std::vector<ModelSurvey> ByModel(const std::vector<Configuration>& configurations,
                                 const std::vector<CardSurvey>& cards) {
  std::vector<ModelSurvey> models;
  for (const Configuration& configuration : configurations) {
    const std::string name = FindString(configuration.params, kModelNameParameter).value_or("");
    auto model = std::find_if(models.begin(), models.end(),
                              [&name](const ModelSurvey& known) { return known.name == name; });
    if (model == models.end()) model = models.insert(models.end(), ModelSurvey{.name = name});
    Count(configuration, cards, *model);
  }
  return models;
}

}  // namespace

absl::StatusOr<SpaceSurvey> SurveySpace(const StudySpec& study, const FitDecider& decider,
                                        const SurveyOptions& options) {
  if (options.cards.empty()) return absl::InvalidArgumentError("expected a card, got none");
  const SpaceWalk walk(study.space);
  SpaceSurvey survey;
  HPO_ASSIGN_OR_RETURN(const std::vector<Configuration> configurations,
                       MeasureAll(study, decider, walk, options, survey.sampled));
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
  for (const Bytes capacity : options.cards) {
    const Bytes usable = UsableBytes(capacity, decider.device(), decider.memory());
    survey.cards.push_back({.capacity = capacity,
                            .usable = usable,
                            .strict = CountFor(configurations, MemoryPolicy::kStrict, usable),
                            .plan = CountFor(configurations, MemoryPolicy::kPlan, usable)});
  }
  survey.models = ByModel(configurations, survey.cards);
  return survey;
}

}  // namespace hpo
