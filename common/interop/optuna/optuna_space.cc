#include "common/interop/optuna/optuna_space.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/interop/optuna/optuna_distribution.h"
#include "common/interop/optuna/optuna_source.h"
#include "common/space/search_space.h"
#include "common/space/search_space_validation.h"

namespace hpo {
namespace {

using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

constexpr int64_t kMostFilledIn = 1000;
constexpr double kGridTolerance = 1e-9;  // as a fraction of the step

// What the trials of a study drew for one parameter.
struct Drawn {
  std::string name;
  Domain domain;
  std::map<int64_t, ParamValue> values;  // by trial
};

// How to change what a file says of a parameter.
std::string CureBy(absl::string_view what, absl::string_view statement, const std::string& name) {
  return absl::StrCat("; to import the study, ", what, " in a copy of the file: sqlite3 COPY \"",
                      statement, " WHERE param_name = '", absl::StrReplaceAll(name, {{"'", "''"}}),
                      "'\"");
}

absl::Status CheckName(const std::string& name) {
  const SearchSpace alone{.parameters = {{.name = name, .domain = CategoricalDomain{{true}}}}};
  const absl::Status valid = ValidateParameter(alone, 0);
  if (valid.ok()) return valid;
  return absl::InvalidArgumentError(absl::StrCat(
      absl::StripPrefix(valid.message(), absl::StrCat("parameters.", name, ": ")),
      CureBy("rename the parameter", "UPDATE trial_params SET param_name = 'NEW'", name)));
}

// Before a bound is taken for an integer, which it may be too large for.
absl::Status CheckBounds(const std::string& name, const Json& distribution) {
  constexpr double kMostExact = 0x1p53;
  const Json& attributes = distribution["attributes"];
  const Json& low = attributes["low"];
  const Json& high = attributes["high"];
  if (low.get<double>() >= -kMostExact && high.get<double>() <= kMostExact) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected whole numbers within -2^53 and 2^53, got [", DumpJson(low), ", ",
                   DumpJson(high), "], which Optuna's database does not keep exactly",
                   CureBy("leave the parameter out", "DELETE FROM trial_params", name)));
}

int64_t WholeOf(const Json& number) {
  return number.is_number_integer() ? number.get<int64_t>() : std::llround(number.get<double>());
}

absl::StatusOr<Domain> DomainOf(const std::string& name, const std::string& text) {
  HPO_ASSIGN_OR_RETURN(const OptunaDistribution known, ParseOptunaDistribution(text));
  HPO_ASSIGN_OR_RETURN(const Json json, ParsePythonJson(text));
  const Json& attributes = json["attributes"];
  const Json step = attributes.value("step", Json());
  if (known.name == "IntDistribution") {
    HPO_RETURN_IF_ERROR(CheckBounds(name, json));
    return IntDomain{.low = WholeOf(attributes["low"]),
                     .high = WholeOf(attributes["high"]),
                     .step = step.is_null() ? 1 : WholeOf(step),
                     .log = known.log};
  }
  if (known.name == "FloatDistribution") {
    FloatDomain real{.low = attributes["low"].get<double>(),
                     .high = attributes["high"].get<double>(),
                     .log = known.log};
    if (!step.is_null()) real.step = step.get<double>();
    return real;
  }
  if (known.choices.is_null()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected an IntDistribution, a FloatDistribution or a CategoricalDistribution, got a ",
        known.name));
  }
  CategoricalDomain domain;
  for (const Json& element : known.choices) {
    HPO_ASSIGN_OR_RETURN(const ParamValue choice, OptunaChoice(element));
    if (!Contains(domain, Coerce(domain, choice))) domain.choices.push_back(choice);
  }
  return domain;
}

void Widen(const FloatDomain& other, FloatDomain& domain) {
  const double apart = domain.step ? (other.low - domain.low) / *domain.step : 0.0;
  const bool one_grid =
      domain.step == other.step && std::abs(apart - std::round(apart)) <= kGridTolerance;
  if (!one_grid) domain.step.reset();
  domain.low = std::min(domain.low, other.low);
  domain.high = std::max(domain.high, other.high);
}

void Widen(const IntDomain& other, IntDomain& domain) {
  domain.step = std::gcd(std::gcd(domain.step, other.step), other.low - domain.low);
  domain.low = std::min(domain.low, other.low);
  domain.high = std::max(domain.high, other.high);
}

void Widen(const CategoricalDomain& other, CategoricalDomain& domain) {
  for (const ParamValue& choice : other.choices) {
    if (!Contains(domain, Coerce(domain, choice))) domain.choices.push_back(choice);
  }
}

//   InvalidArgument  of another kind, or one of them on a logarithmic scale
absl::Status Widen(const Domain& other, Domain& domain) {
  return std::visit(
      [&](const auto& from, auto& to) -> absl::Status {
        if constexpr (std::is_same_v<decltype(from),
                                     const std::remove_reference_t<decltype(to)>&>) {
          if constexpr (requires { to.log; }) {
            if (from.log != to.log) {
              return absl::InvalidArgumentError(
                  "expected one scale in all trials, got a logarithmic and a linear one");
            }
          }
          Widen(from, to);
          return absl::OkStatus();
        } else {
          return absl::InvalidArgumentError(
              absl::StrCat("expected distributions of one kind in all trials, got ",
                           FormatDomain(domain), " and ", FormatDomain(other)));
        }
      },
      other, domain);
}

// Optuna takes a value outside its range (enqueue_trial): the range then holds it, too.
void WidenTo(const ParamValue& value, Domain& domain) {
  if (Contains(domain, value)) return;
  const auto* number = std::get_if<double>(&value);
  const auto* whole = std::get_if<int64_t>(&value);
  auto* real = std::get_if<FloatDomain>(&domain);
  auto* integers = std::get_if<IntDomain>(&domain);
  if (real != nullptr && number != nullptr && (!real->log || *number > 0.0)) {
    Widen(FloatDomain{.low = *number, .high = *number, .step = real->step}, *real);
  } else if (integers != nullptr && whole != nullptr && (!integers->log || *whole > 0)) {
    Widen(IntDomain{.low = *whole, .high = *whole, .step = integers->step}, *integers);
  }
}

class SpaceReader {
 public:
  // `source` outlives it.
  explicit SpaceReader(const OptunaSource& source) : source_(source) {}

  absl::StatusOr<Ordered> Read();

 private:
  absl::Status ReadTrials();
  absl::Status Take(int64_t trial, const std::string& name, double stored, const std::string& text);
  std::set<int64_t> TrialsWith(const Drawn& drawn) const;
  std::optional<std::vector<ParamValue>> TellingValues(const Drawn& parent,
                                                       const std::set<int64_t>& with) const;
  std::optional<Condition> ConditionOf(const Drawn& child) const;

  const OptunaSource& source_;
  std::vector<Drawn> parameters_;  // in the order in which they were first drawn
  std::set<int64_t> whole_;        // trials that drew all their parameters
};

absl::Status SpaceReader::Take(int64_t trial, const std::string& name, double stored,
                               const std::string& text) {
  HPO_RETURN_IF_ERROR(CheckName(name));
  HPO_ASSIGN_OR_RETURN(Domain domain, DomainOf(name, text));
  HPO_ASSIGN_OR_RETURN(const Json json, ParsePythonJson(text));
  HPO_ASSIGN_OR_RETURN(ParamValue value, OptunaValue(stored, json));
  auto drawn = std::find_if(parameters_.begin(), parameters_.end(),
                            [&name](const Drawn& known) { return known.name == name; });
  if (drawn == parameters_.end()) {
    drawn = parameters_.insert(drawn, {.name = name, .domain = std::move(domain)});
  } else {
    HPO_RETURN_IF_ERROR(Widen(domain, drawn->domain));
  }
  WidenTo(value, drawn->domain);
  drawn->values[trial] = std::move(value);
  return absl::OkStatus();
}

absl::Status SpaceReader::ReadTrials() {
  const Json study = Json::array({source_.study_id()});
  HPO_RETURN_IF_ERROR(source_.Select(
      "SELECT trial_id FROM trials WHERE study_id = ? AND state IN ('COMPLETE', 'PRUNED')", study,
      [&](const OptunaRow& row) {
        whole_.insert(row.Int(0));
        return absl::OkStatus();
      }));
  return source_.Select(
      "SELECT trials.trial_id, param_name, param_value, distribution_json, number FROM trials "
      "JOIN trial_params ON trials.trial_id = trial_params.trial_id WHERE study_id = ? "
      "ORDER BY number, param_id",
      study, [&](const OptunaRow& row) {
        return Annotate(Take(row.Int(0), row.Text(1), row.Real(2), row.Text(3)),
                        absl::StrCat("trial ", row.Int(4), ": parameter ", row.Text(1)));
      });
}

std::set<int64_t> SpaceReader::TrialsWith(const Drawn& drawn) const {
  std::set<int64_t> trials;
  for (const auto& [trial, value] : drawn.values) {
    if (whole_.contains(trial)) trials.insert(trial);
  }
  return trials;
}

// Of whole numbers that are all above, or below, the others: also those that no trial drew yet.
std::vector<ParamValue> FilledIn(const IntDomain& domain, const std::set<ParamValue>& with,
                                 const std::set<ParamValue>& without) {
  int64_t low = std::get<int64_t>(*with.begin());
  int64_t high = std::get<int64_t>(*with.rbegin());
  if (*with.begin() > *without.rbegin()) {
    high = domain.high;
  } else if (*with.rbegin() < *without.begin()) {
    low = domain.low;
  } else {
    return {with.begin(), with.end()};
  }
  if ((high - low) / domain.step >= kMostFilledIn) return {with.begin(), with.end()};
  std::vector<ParamValue> values;
  for (int64_t value = low; value <= high; value += domain.step) values.emplace_back(value);
  return values;
}

// The values of `parent` in the trials `with`, all of which have it, where no other trial has one
// of them and some other trial has another.
std::optional<std::vector<ParamValue>> SpaceReader::TellingValues(
    const Drawn& parent, const std::set<int64_t>& with) const {
  if (std::holds_alternative<FloatDomain>(parent.domain)) return std::nullopt;
  std::set<ParamValue> inside;
  std::set<ParamValue> outside;
  for (const int64_t trial : whole_) {
    const auto value = parent.values.find(trial);
    if (value != parent.values.end()) {
      (with.contains(trial) ? inside : outside).insert(value->second);
    } else if (with.contains(trial)) {
      return std::nullopt;
    }
  }
  const bool apart =
      std::none_of(inside.begin(), inside.end(),
                   [&outside](const ParamValue& value) { return outside.contains(value); });
  if (inside.empty() || outside.empty() || !apart) return std::nullopt;
  const auto* integers = std::get_if<IntDomain>(&parent.domain);
  if (integers != nullptr) return FilledIn(*integers, inside, outside);
  return std::vector<ParamValue>(inside.begin(), inside.end());
}

// On the parameter that most trials have; nullopt where all trials have `child`, or nothing tells.
std::optional<Condition> SpaceReader::ConditionOf(const Drawn& child) const {
  const std::set<int64_t> with = TrialsWith(child);
  std::optional<Condition> condition;
  size_t most = 0;
  if (with.empty() || with.size() == whole_.size()) return condition;
  for (const Drawn& parent : parameters_) {
    const size_t num_trials = TrialsWith(parent).size();
    if (num_trials <= most || num_trials <= with.size()) continue;
    std::optional<std::vector<ParamValue>> values = TellingValues(parent, with);
    if (!values) continue;
    most = num_trials;
    condition = Condition{.name = parent.name, .values = *std::move(values)};
  }
  return condition;
}

Ordered ListOf(const std::vector<ParamValue>& values) {
  Ordered list = Ordered::array();
  for (const ParamValue& value : values) list.push_back(Ordered(ParamToJson(value)));
  return list;
}

Ordered EntryOf(const FloatDomain& domain) {
  if (domain.low == domain.high) return {{"choices", Ordered::array({domain.low})}};
  Ordered entry = {{"float", Ordered::array({domain.low, domain.high})}};
  if (domain.log) entry["log"] = true;
  if (domain.step) entry["step"] = *domain.step;
  return entry;
}

Ordered EntryOf(const IntDomain& domain) {
  Ordered entry = {{"int", Ordered::array({domain.low, domain.high})}};
  if (domain.log) entry["log"] = true;
  if (domain.step > 1 && !domain.log) entry["step"] = domain.step;
  return entry;
}

Ordered EntryOf(const CategoricalDomain& domain) { return {{"choices", ListOf(domain.choices)}}; }

absl::StatusOr<Ordered> SpaceReader::Read() {
  HPO_RETURN_IF_ERROR(ReadTrials());
  if (parameters_.empty()) {
    return absl::FailedPreconditionError(
        "expected a trial with parameters, from which the search space is made, got none");
  }
  Ordered space = Ordered::object();
  for (const Drawn& drawn : parameters_) {
    Ordered entry = std::visit([](const auto& domain) { return EntryOf(domain); }, drawn.domain);
    if (const std::optional<Condition> condition = ConditionOf(drawn)) {
      entry["when"] = {{condition->name, ListOf(condition->values)}};
    }
    space[drawn.name] = std::move(entry);
  }
  return space;
}

absl::StatusOr<Ordered> ObjectivesOf(const OptunaSource& source) {
  HPO_ASSIGN_OR_RETURN(const std::vector<std::string> directions, source.Directions());
  HPO_ASSIGN_OR_RETURN(const std::optional<Json> names, source.MetricNames());
  const bool are_named = names && names->is_array() && names->size() == directions.size();
  Ordered objectives = Ordered::array();
  for (size_t i = 0; i < directions.size(); ++i) {
    if (directions[i] != "MINIMIZE" && directions[i] != "MAXIMIZE") {
      return absl::InvalidArgumentError(
          absl::StrCat("expected the direction MINIMIZE or MAXIMIZE, got ", directions[i]));
    }
    Json metric = directions.size() == 1 ? "value" : absl::StrCat("value_", i);
    if (are_named) metric = (*names)[i];
    objectives.push_back({{"metric", Ordered(metric)},
                          {"direction", directions[i] == "MINIMIZE" ? "minimize" : "maximize"}});
  }
  return objectives.size() == 1 ? objectives.front() : objectives;
}

}  // namespace

absl::StatusOr<std::string> OptunaStudyFile(const std::string& path, const std::string& from,
                                            const std::string& name) {
  HPO_ASSIGN_OR_RETURN(const OptunaSource source, OptunaSource::Open(path, from));
  const std::string place = absl::StrCat(path, ": study ", source.name());
  const absl::StatusOr<Ordered> objectives = ObjectivesOf(source);
  if (!objectives.ok()) return Annotate(objectives.status(), place);
  const absl::StatusOr<Ordered> space = SpaceReader(source).Read();
  if (!space.ok()) return Annotate(space.status(), place);
  const Ordered file = {{"name", name.empty() ? source.name() : name},
                        {"objective", *objectives},
                        {"trainer", {{"task", "function"}}},
                        {"memory", {{"policy", "off"}}},
                        {"parameters", *space}};
  return file.dump();
}

}  // namespace hpo
