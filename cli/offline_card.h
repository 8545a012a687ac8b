// The memory model without a server and without a device: models from the catalogue or from their
// config.json, cards from their size alone. What comes out is what a server decides for such a
// card before any trial has taught it: shipped defaults of the device, margins before evidence,
// rows all as long as tok.max_length.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/memory_commands.h"
#include "common/memory/fit_decision.h"
#include "common/study.h"
#include "common/worker_facts.h"
#include "nlohmann/json.hpp"

namespace hpo {

// The shape of a published model by its name, or of the model whose config.json (or its folder)
// `name_or_path` is.
//   NotFound         a name that the catalogue lacks (with a suggestion), no such file
//   InvalidArgument  see ParseModelConfig
absl::StatusOr<ModelFacts> FindModel(const std::string& name_or_path);

// The models that a study may draw, or its default one, as far as they can be found and traced.
std::vector<ModelFacts> FindModels(const StudySpec& study);

// As FindModel, for a model whose training steps can be traced.
//   Unimplemented  its family cannot; says which can
absl::StatusOr<ModelFacts> FindTraceableModel(const std::string& name_or_path);

struct OfflineDevice {
  std::string kind;
  std::vector<Bytes> cards;  // at least one, each above 0
  std::optional<Bytes> headroom;
};

//   InvalidArgument  no card, a word that is no size or 0; names the option
absl::StatusOr<OfflineDevice> ParseDevice(const CardOptions& options);

// Decides by `policy`, otherwise as the study says; the device's headroom beats the study's.
FitDecider OfflineDecider(StudySpec study, MemoryPolicy policy, std::span<const ModelFacts> models,
                          const OfflineDevice& device);

// What the figures stand on, in one line: whose kernels, precision, attention, device defaults.
std::string BasisText(const OfflineDevice& device);
nlohmann::ordered_json BasisJson(const OfflineDevice& device);

}  // namespace hpo
