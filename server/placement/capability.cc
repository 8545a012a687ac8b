// Tested by tests/server/scheduler/capacity_test.cc.
#include "server/placement/capability.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/models/model_parameters.h"
#include "common/models/task_kind.h"
#include "common/study/model_catalog.h"
#include "memory/plan/fit_decision.h"

namespace hpo::server {
namespace {

constexpr absl::string_view kModelName = "model.name";
constexpr absl::string_view kOurTrainer = "hpo-trainer";

// A trainer that is not ours may bring models and data of its own: what the worker does not
// advertise is not held against it.
bool IsOurs(const WorkerFacts& worker) { return worker.trainer == kOurTrainer; }

bool Usable(const StudySpec& study, const WorkerFacts& worker, const ModelFacts& model) {
  if (!IsOurs(worker)) return true;
  return TrainerSupports(model.shape) &&
         (model.has_weights || study.trainer.model_init == "random");
}

// The worker's model that a study calls `name`: of that very name, else of the name that it is
// short for; null where it has neither.
const ModelFacts* FindModel(const WorkerFacts& worker, const std::string& name) {
  const auto find = [&worker](const std::string& wanted) {
    return std::find_if(worker.models.begin(), worker.models.end(),
                        [&wanted](const ModelFacts& model) { return model.name == wanted; });
  };
  auto found = find(name);
  if (found == worker.models.end()) found = find(FullModelName(name));
  return found == worker.models.end() ? nullptr : &*found;
}

bool HasModel(const StudySpec& study, const WorkerFacts& worker, const std::string& name) {
  if (!IsOurs(worker) && worker.models.empty()) return true;
  const ModelFacts* const model = FindModel(worker, name);
  return model != nullptr && Usable(study, worker, *model);
}

bool HasData(const WorkerFacts& worker, const std::string& file) {
  if (file.empty() || !IsOurs(worker)) return true;
  return std::any_of(worker.data_sets.begin(), worker.data_sets.end(),
                     [&file](const DataSetFacts& data) { return data.name == file; });
}

// The model names that the study's configurations may take; empty when it has no such parameter.
std::vector<std::string> ModelChoices(const StudySpec& study) {
  std::vector<std::string> names;
  const Parameter* parameter = study.space.Find(kModelName);
  const CategoricalDomain* domain =
      parameter == nullptr ? nullptr : std::get_if<CategoricalDomain>(&parameter->domain);
  if (domain != nullptr) {
    for (const ParamValue& choice : domain->choices) {
      if (const auto* name = std::get_if<std::string>(&choice)) names.push_back(*name);
    }
  } else if (const auto name = FindString(study.trainer.defaults, kModelName)) {
    names.push_back(*name);
  }
  return names;
}

// hpo-trainer trains its own tasks alone. Two workers of one device need two names.
absl::Status CheckHasProgram(const StudySpec& study, const WorkerFacts& worker) {
  if (!IsOurs(worker)) return absl::OkStatus();
  const bool names_program = !study.trainer.command.empty();
  if (!names_program && ParseTaskKind(study.trainer.task)) return absl::OkStatus();
  const std::string why =
      names_program
          ? absl::StrCat("names a program, and worker ", worker.worker, " runs hpo-trainer alone")
          : absl::StrCat("has the task ", study.trainer.task, ", which hpo-trainer of worker ",
                         worker.worker, " does not train");
  return absl::FailedPreconditionError(
      absl::StrCat("study ", study.name, " ", why,
                   "; stop it, or give the next one a --name, and start one that runs ",
                   names_program ? "the study's" : "your", " program: ", WorkerCommands(study)));
}

// A trial takes all GPUs that the worker's process holds, no more and no fewer: what it learns
// depends on how many there are.
absl::Status CheckGpus(const StudySpec& study, const WorkerFacts& worker) {
  const int64_t wanted = study.trainer.gpus;
  if (wanted == worker.gpus) return absl::OkStatus();
  const std::string why = absl::StrCat("study ", study.name, " trains each trial on ", wanted,
                                       wanted == 1 ? " GPU" : " GPUs", " (trainer.gpus), and ");
  if (IsOurs(worker) && wanted > 1) {
    return absl::FailedPreconditionError(
        absl::StrCat(why, "hpo-trainer of worker ", worker.worker,
                     " trains on one GPU; give the study a program of your own "
                     "(trainer.command), such as torchrun"));
  }
  const std::string advice = absl::StrCat("with --gpus-per-trial ", wanted);
  if (worker.device.kind == "cpu") {
    return absl::FailedPreconditionError(absl::StrCat(
        why, "worker ", worker.worker, " has none; start one on a machine with GPUs, ", advice));
  }
  return absl::FailedPreconditionError(absl::StrCat(why, "each trial of worker ", worker.worker,
                                                    " takes ", worker.gpus, "; start hpo-worker ",
                                                    advice));
}

absl::Status MissingData(const WorkerFacts& worker, const std::string& file) {
  if (const auto why = worker.left_out.find(file); why != worker.left_out.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", worker.worker, " cannot read data file ", file, ": ", why->second));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("worker ", worker.worker, " has no data file ", file,
                   "; run: scripts/prepare_criteria_data --out DIR (or bring your own ", file,
                   "), then hpo-worker --data DIR"));
}

// Why the worker cannot run the model called `name`; empty: it is not there.
std::string WhyUnusable(const StudySpec& study, const WorkerFacts& worker,
                        const std::string& name) {
  for (const std::string& called : {name, FullModelName(name)}) {
    const auto found = worker.left_out.find(called);
    if (found != worker.left_out.end()) return found->second;
  }
  const ModelFacts* const model = FindModel(worker, name);
  if (model == nullptr) return "";
  if (const absl::Status trainable = CheckTrainable(model->shape); !trainable.ok()) {
    return absl::StrCat(trainable.message(),
                        " (another architecture needs a program of your own: --trainer)");
  }
  const bool needs_weights = study.trainer.model_init != "random";
  return needs_weights && !model->has_weights ? "it has no model.safetensors" : "";
}

absl::Status MissingModel(const StudySpec& study, const WorkerFacts& worker,
                          const std::vector<std::string>& names) {
  const absl::string_view weights =
      study.trainer.model_init == "random" ? "" : "model.safetensors, ";
  std::string reasons;
  for (const std::string& name : names) {
    const std::string why = WhyUnusable(study, worker, name);
    if (!why.empty()) absl::StrAppend(&reasons, "; ", name, ": ", why);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("worker ", worker.worker, " has no usable model of ", absl::StrJoin(names, ", "),
                   reasons, "; put config.json, ", weights, "the tokenizer's files into DIR/",
                   names.front(), ", then hpo-worker --models DIR"));
}

SearchSpace SpaceOf(const StudySpec& study, std::span<const WorkerFacts> workers) {
  SearchSpace space = study.space;
  space.model_facts = ModelFactsOf(study, workers);
  for (Parameter& parameter : space.parameters) {
    if (parameter.name != kModelName) continue;
    auto* domain = std::get_if<CategoricalDomain>(&parameter.domain);
    if (domain == nullptr) continue;
    std::erase_if(domain->choices, [&](const ParamValue& choice) {
      const auto* name = std::get_if<std::string>(&choice);
      return name != nullptr &&
             std::none_of(workers.begin(), workers.end(), [&](const WorkerFacts& worker) {
               return HasModel(study, worker, *name);
             });
    });
    if (parameter.default_value && !Contains(parameter.domain, *parameter.default_value)) {
      parameter.default_value.reset();
    }
  }
  return space;
}

}  // namespace

ParamMap CompleteParams(const StudySpec& study, const ParamMap& params) {
  ParamMap complete = params;
  complete.insert(study.trainer.defaults.begin(), study.trainer.defaults.end());
  return complete;
}

absl::Status CheckTold(const std::string& study, const WorkerFacts& worker) {
  if (!worker.serves) return absl::OkStatus();
  const std::vector<std::string>& told = *worker.serves;
  if (std::find(told.begin(), told.end(), study) != told.end()) return absl::OkStatus();
  if (told.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", worker.worker,
                     " runs a trainer of its own and there are several studies: say which it "
                     "serves with --study NAME"));
  }
  return absl::FailedPreconditionError(absl::StrCat("worker ", worker.worker, " serves ",
                                                    absl::StrJoin(told, ", "), " only (--study)"));
}

std::string WorkerCommands(const StudySpec& study) {
  std::string program;
  if (!study.trainer.command.empty()) {
    program = absl::StrCat(" --study ", study.name, " --allow-commands");
  } else if (!ParseTaskKind(study.trainer.task)) {
    program = absl::StrCat(" --study ", study.name, " --trainer \"COMMAND\"");
  }
  if (study.trainer.gpus > 1) {
    return absl::StrCat("hpo-worker", program, " --gpus-per-trial ", study.trainer.gpus);
  }
  return absl::StrCat("hpo-worker", program, " --gpu 0 (or: hpo-worker", program,
                      " --device cpu --memory-limit 2GiB)");
}

absl::Status CheckServes(const StudySpec& study, const WorkerFacts& worker) {
  HPO_RETURN_IF_ERROR(CheckTold(study.name, worker));
  HPO_RETURN_IF_ERROR(CheckHasProgram(study, worker));
  HPO_RETURN_IF_ERROR(CheckGpus(study, worker));
  for (const std::string& file : {study.trainer.train, study.trainer.validation}) {
    if (!HasData(worker, file)) return MissingData(worker, file);
  }
  const std::vector<std::string> names = ModelChoices(study);
  const bool has_one =
      names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return HasModel(study, worker, name);
      });
  return has_one ? absl::OkStatus() : MissingModel(study, worker, names);
}

absl::Status CheckCanRun(const StudySpec& study, const WorkerFacts& worker,
                         const ParamMap& params) {
  HPO_RETURN_IF_ERROR(CheckServes(study, worker));
  const auto name = FindString(CompleteParams(study, params), kModelName);
  if (!name || HasModel(study, worker, *name)) return absl::OkStatus();
  return MissingModel(study, worker, {*name});
}

Bytes CapacityAlone(const WorkerFacts& worker) {
  const bool others = worker.device.total - worker.capacity > kCapacityNoise;
  return others ? worker.device.total : worker.capacity;
}

std::optional<Bytes> LargestUsable(std::span<const WorkerFacts> workers, const StudySpec& study,
                                   const ParamMap& params) {
  std::optional<Bytes> largest;
  for (const WorkerFacts& worker : workers) {
    if (!CheckCanRun(study, worker, params).ok()) continue;
    const Bytes usable =
        memory::UsableBytes(memory::QuantizeCapacity(worker.capacity), worker.device, study.memory);
    largest = largest.has_value() ? std::max(*largest, usable) : usable;
  }
  return largest;
}

absl::Status CheckDigests(const std::string& study,
                          const std::map<std::string, std::string>& begun_with,
                          const WorkerFacts& worker) {
  for (const DataSetFacts& data : worker.data_sets) {
    const auto pinned = begun_with.find(data.name);
    if (pinned == begun_with.end() || pinned->second == data.digest) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "study ", study, ": data file ", data.name, " of worker ", worker.worker,
        ": expected digest ", pinned->second, " (the study was begun with it), got ", data.digest));
  }
  return absl::OkStatus();
}

std::map<std::string, ParamMap> ModelFactsOf(const StudySpec& study,
                                             std::span<const WorkerFacts> workers) {
  std::map<std::string, ParamMap> facts = study.space.model_facts;
  // Listed models are heavy whether or not a worker has them.
  for (const std::string& name : study.heavy_models) {
    facts[name]["model.class"] = std::string("heavy");
  }
  for (const WorkerFacts& worker : workers) {
    for (const ModelFacts& model : worker.models) {
      ParamMap& known = facts[model.name];
      known.emplace("model.class", std::string(IsHeavy(model.shape) ? "heavy" : "base"));
      known.emplace("model.family", model.shape.family);
    }
  }
  for (const std::string& name : ModelChoices(study)) {
    if (facts.contains(name)) continue;
    const auto full = facts.find(FullModelName(name));
    if (full != facts.end()) facts.emplace(name, full->second);
  }
  return facts;
}

SearchSpace SpaceFor(const StudySpec& study, const WorkerFacts& worker) {
  return SpaceOf(study, std::span(&worker, 1));
}

SearchSpace SpaceForAny(const StudySpec& study, std::span<const WorkerFacts> workers) {
  std::vector<WorkerFacts> able(workers.begin(), workers.end());
  std::erase_if(able,
                [&study](const WorkerFacts& worker) { return !CheckServes(study, worker).ok(); });
  if (!able.empty()) return SpaceOf(study, able);
  SearchSpace space = study.space;
  space.model_facts = ModelFactsOf(study, workers);
  return space;
}

}  // namespace hpo::server
