#include "server/analysis/memory_analysis.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "memory/frontier/learned_survey.h"
#include "memory/need/device_defaults.h"
#include "memory/offline/offline_card.h"
#include "server/api/memory_answer.h"
#include "server/placement/capability.h"
#include "server/studies/trial_writer.h"

namespace hpo::server {
namespace {

constexpr int kDefaultAxisPoints = 16;
// Whose replays, and whose surveys, are remembered.
constexpr size_t kMostStudies = 8;

// A GPU that nobody has measured: the memory model's defaults, the published models of the study,
// and rows as long as tok.max_length. A program of the study's own plans nothing.
WorkerFacts Unmeasured(const StudySpec& spec) {
  WorkerFacts facts;
  facts.device = memory::DefaultDevice("cuda", Bytes{});
  facts.models = memory::FindModels(spec);
  facts.plans = spec.trainer.command.empty();
  facts.gpus = spec.trainer.gpus;
  return facts;
}

// A model that the worker has, where nobody says which: the study's default one, else the first of
// its choices.
void NameModel(const StudySpec& spec, const WorkerFacts& facts, ParamMap& params) {
  const Parameter* const model = spec.space.Find(kModelNameParameter);
  if (model == nullptr || params.contains(kModelNameParameter)) return;
  std::vector<ParamValue> names;
  if (model->default_value) names.push_back(*model->default_value);
  if (const auto* choices = std::get_if<CategoricalDomain>(&model->domain)) {
    names.insert(names.end(), choices->choices.begin(), choices->choices.end());
  }
  const auto known = std::find_if(names.begin(), names.end(), [&facts](const ParamValue& name) {
    return std::any_of(facts.models.begin(), facts.models.end(),
                       [&name](const ModelFacts& has) { return ParamValue(has.name) == name; });
  });
  if (known != names.end()) params.emplace(kModelNameParameter, *known);
}

std::string BasisText(const WorkerFacts& facts, bool is_estimated) {
  if (!is_estimated) {
    return "By what trials and dry runs of this study used, with a margin for what is not known.";
  }
  if (facts.worker.empty()) {
    return absl::StrCat(
        "By replays of hpo-trainer's training step on a GPU that no worker has "
        "measured: base ",
        FormatBytes(facts.device.base), ", all rows as long as tok.max_length.");
  }
  return absl::StrCat(
      "By replays of hpo-trainer's training step with the device and the data of "
      "worker ",
      facts.worker, ": ", facts.device.name, ", base ", FormatBytes(facts.device.base), " (",
      facts.device.source, ").");
}

}  // namespace

absl::StatusOr<MemoryAnalysis::Basis> MemoryAnalysis::BasisFor(const StudyRuntime& study,
                                                               const std::string& worker) const {
  const SchedulerState& state = scheduler_.state();
  Basis basis{.spec = study.spec()};
  if (worker.empty() && state.workers.List().empty()) {
    basis.facts = Unmeasured(basis.spec);
  } else {
    HPO_ASSIGN_OR_RETURN(basis.facts, ChooseWorker(state.workers, worker));
  }
  const sampler::History history = study.history();
  basis.history_sequence = history.sequence();
  basis.knowledge = state.KnowledgeBy(history, study, basis.facts);
  // Nobody can dry-run a configuration now: what is known otherwise is told.
  basis.knowledge.evidence.may_dry_run = false;
  basis.knowledge.replays = ReplaysOf(study.identity());
  return basis;
}

std::shared_ptr<memory::ReplayTable> MemoryAnalysis::ReplaysOf(
    const StudyRuntime::Identity& study) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(replays_.begin(), replays_.end(),
                                  [&study](const auto& known) { return known.first == study; });
  if (found != replays_.end()) {
    std::rotate(found, found + 1, replays_.end());
  } else {
    replays_.emplace_back(study, std::make_shared<memory::ReplayTable>());
    if (replays_.size() > kMostStudies) replays_.erase(replays_.begin());
  }
  return replays_.back().second;
}

absl::StatusOr<std::vector<Bytes>> MemoryAnalysis::CapacitiesOr(
    const std::vector<Bytes>& asked) const {
  for (const Bytes capacity : asked) {
    if (capacity > Bytes{}) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("capacities: expected more than 0 bytes, got ", capacity.count));
  }
  if (!asked.empty()) return asked;
  std::set<Bytes> of_workers;
  for (const RegisteredWorker& worker : scheduler_.state().workers.List()) {
    const Bytes capacity = memory::QuantizeCapacity(CapacityAlone(worker.facts));
    if (capacity > Bytes{}) of_workers.insert(capacity);
  }
  if (of_workers.empty()) {
    return absl::InvalidArgumentError(
        "capacities: expected the memory of at least one GPU, as no worker has registered");
  }
  return std::vector<Bytes>(of_workers.begin(), of_workers.end());
}

absl::StatusOr<ParamMap> MemoryAnalysis::BestParams(const StudyRuntime& study) const {
  const Direction direction = study.spec().objectives.front().direction;
  std::vector<Trial> best;
  const auto read = [&](const StudyRows& rows) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(best, rows.trials.ListBest(direction, /*limit=*/1));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(ReadRows(*scheduler_.state().store, study, read));
  return best.empty() ? ParamMap() : best.front().params;
}

absl::StatusOr<MemoryFrontier> MemoryAnalysis::Frontier(const std::string& study,
                                                        const FrontierQuery& query) const {
  HPO_ASSIGN_OR_RETURN(const StudyRuntime* const runtime, scheduler_.state().studies.Find(study));
  HPO_ASSIGN_OR_RETURN(std::vector<Bytes> capacities, CapacitiesOr(query.capacities));
  HPO_ASSIGN_OR_RETURN(const Basis basis, BasisFor(*runtime, query.worker));
  memory::NeedGridOptions options{
      .x = query.x,
      .y = query.y,
      .params = query.params,
      .capacities = std::move(capacities),
      .points = static_cast<size_t>(query.points == 0 ? kDefaultAxisPoints : query.points)};
  HPO_ASSIGN_OR_RETURN(const ParamMap best, BestParams(*runtime));
  for (const auto& [name, value] : best) {
    if (basis.spec.space.Find(name) != nullptr) options.params.emplace(name, value);
  }
  NameModel(basis.spec, basis.facts, options.params);
  const memory::FitDecider decider(basis.spec, basis.facts, basis.knowledge.evidence,
                                   basis.knowledge.replays);
  MemoryFrontier frontier;
  HPO_ASSIGN_OR_RETURN(frontier.grid, memory::NeedGridOf(basis.spec, decider, options));
  frontier.basis = BasisText(basis.facts, frontier.grid.is_estimated);
  return frontier;
}

absl::StatusOr<memory::SpaceSurvey> MemoryAnalysis::Survey(
    const Basis& basis, const std::vector<Bytes>& capacities) const {
  const memory::FitDecider decider(basis.spec, basis.facts, basis.knowledge.evidence,
                                   basis.knowledge.replays);
  const memory::SurveyOptions options{.cards = capacities, .most_configurations = kMostSurveyed};
  HPO_ASSIGN_OR_RETURN(memory::SpaceSurvey survey,
                       memory::SurveySpace(basis.spec, decider, options));
  if (survey.unknown < survey.configurations) return survey;
  return memory::SurveyLearned(basis.spec, decider, options);
}

absl::StatusOr<memory::SpaceSurvey> MemoryAnalysis::Fit(const std::string& study,
                                                        const std::vector<Bytes>& asked) const {
  HPO_ASSIGN_OR_RETURN(const StudyRuntime* const runtime, scheduler_.state().studies.Find(study));
  HPO_ASSIGN_OR_RETURN(const std::vector<Bytes> capacities, CapacitiesOr(asked));
  HPO_ASSIGN_OR_RETURN(const Basis basis, BasisFor(*runtime, /*worker=*/""));
  const bool learns = memory::GoesByLearnedNeed(basis.spec.memory, basis.facts);
  Surveyed surveyed{.spec = basis.spec,
                    .facts = basis.facts,
                    .calibration_version = basis.knowledge.calibration_version,
                    .history_sequence = learns ? basis.history_sequence : 0,
                    .capacities = capacities};
  surveyed.facts.capacity = Bytes{};  // changes with each heartbeat, and decides nothing
  {
    const absl::MutexLock lock(&mutex_);
    const auto known = surveyed_.find(runtime->name());
    if (known != surveyed_.end() && known->second.IsFor(surveyed)) return known->second.survey;
  }
  HPO_ASSIGN_OR_RETURN(surveyed.survey, Survey(basis, capacities));
  const absl::MutexLock lock(&mutex_);
  if (surveyed_.size() >= kMostStudies) surveyed_.clear();
  return surveyed_.insert_or_assign(runtime->name(), std::move(surveyed)).first->second.survey;
}

}  // namespace hpo::server
