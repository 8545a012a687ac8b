// Tested by tests/cli/memory/memory_commands_test.cc.
#include "memory/offline/offline_card.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/spelling.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/models/model_config.h"
#include "common/models/task_kind.h"
#include "common/study/model_catalog.h"
#include "memory/need/device_defaults.h"
#include "nlohmann/json.hpp"

namespace hpo::memory {
namespace {

constexpr char kDryRun[] = "hpo memory dry-run -- python3 train.py";

// What a study with an unnamed model would train.
std::vector<std::string> ModelNames(const StudySpec& study) {
  std::vector<std::string> names;
  if (const Parameter* const model = study.space.Find(kModelNameParameter)) {
    if (const auto* const domain = std::get_if<CategoricalDomain>(&model->domain)) {
      for (const ParamValue& choice : domain->choices) names.push_back(FormatParam(choice));
    }
  } else if (const auto name = FindString(study.trainer.defaults, kModelNameParameter)) {
    names.push_back(*name);
  }
  return names;
}

}  // namespace

absl::StatusOr<ModelFacts> FindModel(const std::string& name_or_path) {
  ModelFacts facts;
  facts.name = name_or_path;
  if (const std::optional<ModelShape> shape = KnownModelShape(name_or_path)) {
    facts.shape = *shape;
    return facts;
  }
  std::error_code error;
  std::filesystem::path path(name_or_path);
  if (std::filesystem::is_directory(path, error)) path /= "config.json";
  if (!std::filesystem::exists(path, error)) {
    if (const std::string full = FullModelName(name_or_path); full != name_or_path) {
      return FindModel(full);
    }
    return absl::NotFoundError(absl::StrCat("model '", name_or_path,
                                            "': expected a name of the catalogue or a config.json; "
                                            "it is neither",
                                            DidYouMean(name_or_path, KnownModelNames())));
  }
  HPO_ASSIGN_OR_RETURN(const std::string json, ReadFile(path.string()));
  HPO_ASSIGN_OR_RETURN(facts.shape, ParseModelConfig(json, path.string()));
  return facts;
}

std::vector<ModelFacts> FindModels(const StudySpec& study) {
  std::vector<ModelFacts> models;
  for (const std::string& name : ModelNames(study)) {
    absl::StatusOr<ModelFacts> facts = FindModel(name);
    if (!facts.ok() || !CheckTrainable(facts->shape).ok()) continue;
    facts->name = name;
    models.push_back(*std::move(facts));
  }
  return models;
}

absl::StatusOr<ModelFacts> FindTraceableModel(const std::string& name_or_path) {
  HPO_ASSIGN_OR_RETURN(ModelFacts facts, FindModel(name_or_path));
  if (facts.name != name_or_path) {
    std::cerr << "model " << name_or_path << ": taken as " << facts.name << std::endl;
  }
  if (const absl::Status known = CheckTrainable(facts.shape); !known.ok()) {
    return absl::UnimplementedError(absl::StrCat("model ", name_or_path, ": ", known.message(),
                                                 "; for another model use ", kDryRun));
  }
  return facts;
}

absl::StatusOr<Bytes> ParseSizeOption(absl::string_view option, const std::string& word) {
  const absl::StatusOr<Bytes> size = ParseBytes(word);
  if (!size.ok()) return Annotate(size.status(), option);
  const bool has_unit =
      std::any_of(word.begin(), word.end(), [](unsigned char c) { return absl::ascii_isalpha(c); });
  if (has_unit) return *size;
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": expected a size with its unit, such as ",
                   absl::StripAsciiWhitespace(word), "GiB, got '", word, "'"));
}

absl::StatusOr<OfflineDevice> ParseDevice(const CardOptions& options) {
  OfflineDevice device{.kind = options.kind, .profile = DefaultDevice(options.kind, Bytes{})};
  for (const std::string& card : options.cards) {
    HPO_ASSIGN_OR_RETURN(device.cards.emplace_back(), ParseSizeOption("--card", card));
    if (device.cards.back() > Bytes{}) continue;
    return absl::InvalidArgumentError("--card: expected more than 0 B, got 0 B");
  }
  if (device.cards.empty()) return absl::InvalidArgumentError("--card: expected a size, got none");
  if (!options.headroom.empty()) {
    HPO_ASSIGN_OR_RETURN(device.headroom, ParseSizeOption("--headroom", options.headroom));
  }
  if (device.kind == "cpu") {
    if (options.base.empty()) return device;
    return absl::InvalidArgumentError(
        absl::StrCat("--base: expected none with --device cpu, got ", options.base));
  }
  device.base_source = absl::StrCat("of ", kDefaultCudaBaseSource, "; --base says another");
  if (!options.base.empty()) {
    HPO_ASSIGN_OR_RETURN(device.profile.base, ParseSizeOption("--base", options.base));
    device.base_source = "as given";
  }
  return device;
}

Bytes UsableOf(const OfflineDevice& device, Bytes card) {
  return UsableBytes(card, device.profile, {.headroom = device.headroom});
}

Bytes CardFor(const OfflineDevice& device, Bytes usable) {
  return CapacityFor(usable, device.profile, {.headroom = device.headroom});
}

FitDecider OfflineDecider(StudySpec study, MemoryPolicy policy, std::span<const ModelFacts> models,
                          const OfflineDevice& device) {
  study.memory.policy = policy;
  if (device.headroom.has_value()) study.memory.headroom = device.headroom;
  WorkerFacts worker;
  worker.device = device.profile;
  worker.models.assign(models.begin(), models.end());
  return FitDecider(study, worker);
}

Basis TrainerBasis(const OfflineDevice& device) {
  return {.task = std::string(Name(TaskKind::kTextClassification)),
          .precision = "float32",
          .optimizer = "adamw-fused",
          .attention = device.kind == "cpu" ? "math where it has dropout" : "efficient",
          .base = device.profile.base,
          .base_source = device.base_source,
          .workspaces = device.profile.workspace};
}

std::string BasisText(const Basis& basis) {
  std::string text =
      absl::StrCat("hpo-trainer's training step, ", basis.task, ", ", basis.precision, ", ",
                   basis.optimizer, ", attention ", basis.attention);
  if (!basis.adapters.empty()) absl::StrAppend(&text, ", adapters of ", basis.adapters);
  if (basis.base_source.empty()) return absl::StrCat(text, "; live bytes of a CPU");
  return absl::StrCat(text, "; base ", FormatBytes(basis.base), " (", basis.base_source,
                      "), workspaces ", FormatBytes(basis.workspaces));
}

nlohmann::ordered_json BasisJson(const Basis& basis) {
  return {{"task", basis.task},
          {"precision", basis.precision},
          {"optimizer", basis.optimizer},
          {"attention", basis.attention},
          {"adapters", basis.adapters},
          {"base_bytes", basis.base.count},
          {"base_source", basis.base_source},
          {"workspaces_bytes", basis.workspaces.count}};
}

}  // namespace hpo::memory
