// The memory model without a server and without a device: models from the catalogue or from their
// config.json, cards from their size alone. What comes out is what a server decides for such a
// card before any trial has taught it: shipped defaults of the device, or a base that was measured,
// margins before evidence, rows all as long as tok.max_length.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/worker_facts.h"
#include "common/study/study.h"
#include "memory/plan/fit_decision.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo::memory {

// A device that need not be here.
struct CardOptions {
  std::vector<std::string> cards;  // sizes
  std::string kind = "cuda";       // or "cpu": a budget of live bytes
  std::string headroom;            // a size; empty: the default
  std::string base;                // the same
};

// The shape of a published model by its name, of the model whose config.json (or its folder)
// `name_or_path` is, or of the published one that it is short for (FullModelName), by whose name
// the facts then go.
//   NotFound         a name that the catalogue lacks (with a suggestion), no such file
//   InvalidArgument  see ParseModelConfig
absl::StatusOr<ModelFacts> FindModel(const std::string& name_or_path);

// The models that a study may draw, or its default one, by the study's names, as far as hpo-trainer
// runs them.
std::vector<ModelFacts> FindModels(const StudySpec& study);

// As FindModel, for a model that hpo-trainer runs, by a name that people type: standard error says
// which one a short name is taken for.
//   Unimplemented  hpo-trainer does not run its family; says what to use instead
absl::StatusOr<ModelFacts> FindTraceableModel(const std::string& name_or_path);

struct OfflineDevice {
  std::string kind;
  std::vector<Bytes> cards;  // at least one, each above 0
  std::optional<Bytes> headroom;
  DeviceProfile profile;
  std::string base_source;  // where profile.base comes from
};

//   InvalidArgument  no card, a word that is no size with its unit or 0, a base of a CPU; names the
//                    option
absl::StatusOr<OfflineDevice> ParseDevice(const CardOptions& options);

// "24GiB". A number without a unit is refused: it would mean bytes.
//   InvalidArgument  no size, no unit; names the option
absl::StatusOr<Bytes> ParseSizeOption(absl::string_view option, const std::string& word);

// Of a card's capacity what may be used, and the smallest card of which so much may be.
Bytes UsableOf(const OfflineDevice& device, Bytes card);
Bytes CardFor(const OfflineDevice& device, Bytes usable);

// Decides by `policy`, otherwise as the study says; the device's headroom beats the study's.
FitDecider OfflineDecider(StudySpec study, MemoryPolicy policy, std::span<const ModelFacts> models,
                          const OfflineDevice& device);

// What figures of hpo-trainer's step stand on.
struct Basis {
  std::string task;
  std::string precision;
  std::string optimizer;
  std::string attention;
  std::string adapters;  // "rank 8 on nf4"; empty: none
  Bytes base;
  std::string base_source;
  Bytes workspaces;
};
Basis TrainerBasis(const OfflineDevice& device);
std::string BasisText(const Basis& basis);  // one line
nlohmann::ordered_json BasisJson(const Basis& basis);

}  // namespace hpo::memory
