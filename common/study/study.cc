#include "common/study/study.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/one_of.h"
#include "common/base/status.h"
#include "common/models/task_kind.h"
#include "common/space/free_numbers.h"
#include "common/space/placeholders.h"
#include "common/space/search_space_validation.h"
#include "common/study/joined_errors.h"
#include "common/study/study_fields.h"

namespace hpo {
namespace {

absl::Status CheckAtLeast(absl::string_view field, int64_t low, int64_t value) {
  if (value >= low) return absl::OkStatus();
  return Unexpected(field, absl::StrCat(">= ", low), absl::StrCat(value));
}

// Names become file names, URL segments and database keys.
bool IsStudyName(absl::string_view name) {
  if (name.empty() || name.size() > 100 || name.front() == '.' || name.front() == '-') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

absl::Status CheckObjectives(const std::vector<Objective>& objectives) {
  if (objectives.empty()) return Unexpected("objective", "at least one metric", "none");
  std::set<std::string> seen;
  for (const Objective& objective : objectives) {
    if (objective.metric.empty()) return Unexpected("objective.metric", "a name", "nothing");
    if (objective.metric.size() > static_cast<size_t>(kNameLimit.most)) {
      return Unexpected("objective.metric", absl::StrCat("at most ", kNameLimit.most, " bytes"),
                        absl::StrCat(objective.metric.size(), ": ", Quoted(objective.metric)));
    }
    if (!seen.insert(objective.metric).second) {
      return Unexpected("objective", "distinct metrics", absl::StrCat(objective.metric, " twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCommand(const TrainerSpec& trainer) {
  if (trainer.command.empty() && !trainer.workdir.empty()) {
    return Unexpected("trainer.workdir", "trainer.command too", "none");
  }
  if (!trainer.command.empty() && trainer.command[0].empty()) {
    return Unexpected("trainer.command", "a program first", "nothing");
  }
  int64_t num_bytes = static_cast<int64_t>(trainer.workdir.size());
  for (const std::string& word : trainer.command) {
    num_bytes += static_cast<int64_t>(word.size()) + 1;
  }
  if (num_bytes > kCommandLimit.most) {
    return Unexpected("trainer.command", absl::StrCat("at most ", kCommandLimit.most, " bytes"),
                      absl::StrCat(num_bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckTrainer(const StudySpec& spec) {
  const TrainerSpec& trainer = spec.trainer;
  if (trainer.gpus < 1 || trainer.gpus > kMostGpus) {
    return Unexpected("trainer.gpus", absl::StrCat("1 to ", kMostGpus, " GPUs of one host"),
                      absl::StrCat(trainer.gpus));
  }
  if (trainer.task.empty()) return Unexpected("trainer.task", "a name", "nothing");
  if (ParseTaskKind(trainer.task).has_value()) {
    constexpr const char* kFile =
        "a file name, or trainer: {task: custom} for a program of your own";
    if (trainer.train.empty()) return Unexpected("trainer.train", kFile, "nothing");
    if (trainer.validation.empty()) return Unexpected("trainer.validation", kFile, "nothing");
  }
  if (trainer.model_init != "pretrained" && trainer.model_init != "random") {
    return Unexpected("trainer.init", "pretrained or random",
                      absl::StrCat("'", trainer.model_init, "'"));
  }
  HPO_RETURN_IF_ERROR(CheckAtLeast("trainer.epochs", 1, trainer.epochs));
  HPO_RETURN_IF_ERROR(CheckAtLeast("trainer.measure_every_steps", 0, trainer.measure_every_steps));
  if (trainer.labels.size() > static_cast<size_t>(kLabelLimit.most)) {
    return Unexpected("trainer.labels", absl::StrCat("at most ", kLabelLimit.most),
                      absl::StrCat(trainer.labels.size()));
  }
  HPO_RETURN_IF_ERROR(CheckCommand(trainer));
  for (const std::string& word : trainer.command) {
    HPO_RETURN_IF_ERROR(Annotate(CheckPlaceholders(word, ParameterNames(spec)), "trainer.command"));
  }
  std::set<std::string> labels;
  for (const std::string& label : trainer.labels) {
    if (!labels.insert(label).second) {
      return Unexpected("trainer.labels", "distinct labels", absl::StrCat("'", label, "' twice"));
    }
  }
  for (const auto& [name, value] : trainer.defaults) {
    if (spec.space.Find(name) == nullptr) continue;
    return Unexpected(absl::StrCat("trainer.defaults.", name),
                      "a parameter that the study does not search",
                      "one of its parameters (give that one a default instead)");
  }
  return absl::OkStatus();
}

// A grid needs values that can be counted.
absl::Status CheckGrid(const SearchSpace& space) {
  for (const Parameter& parameter : space.parameters) {
    if (!parameter.modelled || NumValues(parameter.domain).has_value()) continue;
    return Unexpected(
        "sampler.type",
        absl::StrCat("a step or choices for ", parameter.name, ", as a grid takes every value"),
        FormatDomain(parameter.domain));
  }
  return absl::OkStatus();
}

absl::Status CheckCmaEs(const SearchSpace& space) {
  const Parameter* unsuited = FirstNotFreeNumber(space);
  if (unsuited == nullptr) return absl::OkStatus();
  return Unexpected(
      "sampler.type",
      absl::StrCat("auto, tpe or gp, as cma-es needs numbers without conditions and ",
                   unsuited->name, " is ", unsuited->when.empty() ? "a choice" : "conditional"),
      "'cma-es'");
}

absl::Status CheckSampler(const StudySpec& spec) {
  const SamplerSpec& sampler = spec.sampler;
  constexpr absl::string_view kTypes[] = {
      "auto", "tpe",    "tpe-joint", "tpe-group", "tpe-univariate",
      "gp",   "cma-es", "random",    "qmc",       "grid"};
  if (std::find(std::begin(kTypes), std::end(kTypes), sampler.type) == std::end(kTypes)) {
    return Unexpected("sampler.type", OneOf(kTypes), absl::StrCat("'", sampler.type, "'"));
  }
  if ((sampler.type == "gp" || sampler.type == "cma-es") && spec.objectives.size() > 1) {
    return Unexpected("sampler.type", "auto, tpe or random for several objectives",
                      absl::StrCat("'", sampler.type, "'"));
  }
  if (sampler.type == "cma-es") HPO_RETURN_IF_ERROR(CheckCmaEs(spec.space));
  if (sampler.type == "grid") HPO_RETURN_IF_ERROR(CheckGrid(spec.space));
  if (sampler.startup != "sobol" && sampler.startup != "random") {
    return Unexpected("sampler.startup", "random or sobol",
                      absl::StrCat("'", sampler.startup, "'"));
  }
  return CheckAtLeast("sampler.startup_trials", 0, sampler.startup_trials);
}

absl::Status CheckRegretBound(const StudySpec& spec) {
  if (!spec.budget.regret_bound.has_value()) return absl::OkStatus();
  if (spec.objectives.size() > 1) {
    return Unexpected("budget.regret_bound", "a study of one objective",
                      absl::StrCat(spec.objectives.size(), " objectives"));
  }
  if (!spec.constraints.empty()) {
    return Unexpected("budget.regret_bound", "a study without limits on metrics, as it knows none",
                      absl::StrCat("'", DescribeConstraint(spec.constraints.front()), "'"));
  }
  const std::optional<double> gap = spec.budget.regret_bound->gap;
  if (!gap.has_value() || (std::isfinite(*gap) && *gap > 0.0)) return absl::OkStatus();
  return Unexpected("budget.regret_bound", "auto or a number > 0", absl::StrCat(*gap));
}

absl::Status CheckWarmStart(const StudySpec& spec) {
  if (spec.warm_start.empty()) return absl::OkStatus();
  const std::string& type = spec.sampler.type;
  if (type != "auto" && type != "tpe" && type != "gp") {
    return Unexpected("warm_start", "sampler.type auto, tpe or gp", absl::StrCat("'", type, "'"));
  }
  if (spec.objectives.size() > 1) {
    return Unexpected("warm_start", "a study of one objective",
                      absl::StrCat(spec.objectives.size(), " objectives"));
  }
  std::set<std::string> seen;
  for (const std::string& name : spec.warm_start) {
    if (!IsStudyName(name)) {
      return Unexpected("warm_start", "names of studies", absl::StrCat("'", name, "'"));
    }
    if (name == spec.name) return Unexpected("warm_start", "an earlier study", "this study");
    if (!seen.insert(name).second) {
      return Unexpected("warm_start", "distinct studies", absl::StrCat("'", name, "' twice"));
    }
  }
  return absl::OkStatus();
}

// A limit in the direction of the only objective would rule out nothing but what is worse anyway.
absl::Status CheckRestricts(const MetricConstraint& constraint,
                            const std::vector<Objective>& objectives) {
  if (objectives.size() > 1 || objectives.front().metric != constraint.metric) {
    return absl::OkStatus();
  }
  const bool minimize = objectives.front().direction == Direction::kMinimize;
  if ((minimize ? constraint.at_least : constraint.at_most).has_value()) return absl::OkStatus();
  return Unexpected("constraints",
                    absl::StrCat("a limit that the search does not head for anyway, as it ",
                                 minimize ? "minimizes " : "maximizes ", constraint.metric),
                    absl::StrCat("'", DescribeConstraint(constraint), "'"));
}

absl::Status CheckConstraints(const StudySpec& spec) {
  const std::optional<TaskKind> task = ParseTaskKind(spec.trainer.task);
  std::set<std::string> seen;
  for (const MetricConstraint& constraint : spec.constraints) {
    HPO_RETURN_IF_ERROR(Annotate(ValidateConstraint(constraint), "constraints"));
    if (!seen.insert(constraint.metric).second) {
      return Unexpected("constraints", "each metric once, with both its limits",
                        absl::StrCat("'", constraint.metric, "' twice"));
    }
    if (task.has_value()) {
      HPO_RETURN_IF_ERROR(Annotate(CheckMetricFits(*task, constraint.metric), "constraints"));
    }
    HPO_RETURN_IF_ERROR(CheckRestricts(constraint, spec.objectives));
  }
  return absl::OkStatus();
}

absl::Status CheckTarget(const StudySpec& spec) {
  if (!spec.budget.target.has_value()) return absl::OkStatus();
  if (spec.objectives.size() > 1) {
    return Unexpected("budget.target", "a study of one objective",
                      absl::StrCat(spec.objectives.size(), " objectives"));
  }
  if (std::isfinite(*spec.budget.target)) return absl::OkStatus();
  return Unexpected("budget.target", "a finite number", absl::StrCat(*spec.budget.target));
}

absl::Status CheckBudget(const StudySpec& spec) {
  HPO_RETURN_IF_ERROR(CheckRegretBound(spec));
  HPO_RETURN_IF_ERROR(CheckTarget(spec));
  if (spec.budget.trials.has_value()) {
    HPO_RETURN_IF_ERROR(CheckAtLeast("budget.trials", 0, *spec.budget.trials));
  }
  if (spec.budget.no_progress.has_value()) {
    HPO_RETURN_IF_ERROR(CheckAtLeast("budget.no_progress", 1, *spec.budget.no_progress));
  }
  if (spec.budget.wall_clock.has_value() && *spec.budget.wall_clock < absl::ZeroDuration()) {
    return Unexpected("budget.wall_clock", ">= 0", absl::FormatDuration(*spec.budget.wall_clock));
  }
  const auto& trial_limit = spec.budget.trial_wall_clock;
  if (trial_limit.has_value() && *trial_limit <= absl::ZeroDuration()) {
    return Unexpected("budget.trial_wall_clock", "> 0", absl::FormatDuration(*trial_limit));
  }
  const std::optional<double> share = spec.budget.failed_share;
  if (share.has_value() && !(*share >= 0.0 && *share < 1.0)) {
    return Unexpected("budget.failed_share", "a share from 0 to less than 1", absl::StrCat(*share));
  }
  return CheckAtLeast("budget.failures_in_a_row", 0, spec.budget.failures_in_a_row);
}

absl::Status CheckMemory(const StudySpec& spec) {
  if (spec.memory.headroom.has_value()) {
    HPO_RETURN_IF_ERROR(CheckAtLeast("memory.headroom", 0, spec.memory.headroom->count));
  }
  const bool dry_runs = spec.memory.preflight == MemoryPreflight::kDryRun;
  if (dry_runs && spec.memory.policy == MemoryPolicy::kOff) {
    return Unexpected("memory.preflight", "none where memory.policy is off", "dry-run");
  }
  for (const std::string& name : spec.memory.relevant) {
    if (spec.space.Find(name) != nullptr) continue;
    return Unexpected("memory.relevant", "parameters of the study", absl::StrCat("'", name, "'"));
  }
  return absl::OkStatus();
}

absl::Status CheckName(const std::string& name) {
  if (IsStudyName(name)) return absl::OkStatus();
  return Unexpected(
      "name", "1 to 100 letters, digits, '.', '_' and '-' that start with neither '.' nor '-'",
      absl::StrCat("'", name, "'"));
}

// The objectives, and what is asked of metrics: of each other, and of the task.
absl::Status CheckMetrics(const StudySpec& spec) {
  HPO_RETURN_IF_ERROR(CheckObjectives(spec.objectives));
  if (const auto task = ParseTaskKind(spec.trainer.task)) {
    for (const Objective& objective : spec.objectives) {
      HPO_RETURN_IF_ERROR(Annotate(CheckMetricFits(*task, objective.metric), "objective.metric"));
    }
  }
  return CheckConstraints(spec);
}

absl::Status CheckSpace(const SearchSpace& space) {
  return space.parameters.empty() ? Unexpected("parameters", "at least one", "none")
                                  : ValidateSpace(space);
}

}  // namespace

absl::string_view Name(Direction direction) { return NameIn(direction); }
absl::string_view Name(MemoryPolicy policy) { return NameIn(policy); }

std::vector<std::string> ParameterNames(const StudySpec& spec) {
  std::vector<std::string> names;
  for (const Parameter& parameter : spec.space.parameters) names.push_back(parameter.name);
  for (const auto& [name, value] : spec.trainer.defaults) names.push_back(name);
  return names;
}

absl::Status ValidateStudy(const StudySpec& spec) {
  absl::Status errors;
  for (const absl::Status& part :
       {CheckName(spec.name), CheckMetrics(spec), CheckTrainer(spec), CheckBudget(spec),
        CheckMemory(spec), CheckSampler(spec), CheckWarmStart(spec), ValidatePruner(spec.pruner),
        CheckSpace(spec.space)}) {
    errors = Both(errors, part);
  }
  return errors;
}

}  // namespace hpo
