#include "sampler/factory/make_pruner.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "sampler/pruners/asha_pruner.h"
#include "sampler/pruners/hyperband_pruner.h"
#include "sampler/pruners/patient_pruner.h"
#include "sampler/pruners/percentile_pruner.h"
#include "sampler/pruners/predictive_pruner.h"
#include "sampler/pruners/threshold_pruner.h"
#include "sampler/pruners/wilcoxon_pruner.h"

namespace hpo::sampler {
namespace {

class NoPruner final : public Pruner {
 public:
  std::optional<PruneDecision> Decide(const History&, TrialNumber) const override {
    return std::nullopt;
  }
};

// nullptr for "none". `type` is the spec's own type, or the one that it wraps.
std::unique_ptr<Pruner> MakeOfType(const std::string& type, const StudySpec& study) {
  const Direction direction = study.objectives.front().direction;
  PrunerSpec spec = study.pruner;
  spec.type = type;
  if (type == "none") return nullptr;
  if (type == "threshold") return std::make_unique<ThresholdPruner>(spec, direction);
  if (type == "asha") return std::make_unique<AshaPruner>(spec, direction);
  if (type == "hyperband") return std::make_unique<HyperbandPruner>(spec, direction, study.name);
  if (type == "predictive") return std::make_unique<PredictivePruner>(spec, direction);
  if (type == "wilcoxon") return std::make_unique<WilcoxonPruner>(spec, direction);
  if (type == "patient") {
    return std::make_unique<PatientPruner>(spec, direction, MakeOfType(spec.wrapped, study));
  }
  HPO_CHECK(type == "median" || type == "percentile");
  return std::make_unique<PercentilePruner>(spec, direction);
}

}  // namespace

std::string WhyNeverStopped(const HistoryTrial& completed, const PrunerSpec& pruner) {
  const bool judges =
      pruner.type != "none" && (pruner.type != "patient" || pruner.wrapped != "none");
  if (!judges || !completed.by_epoch || completed.state != TrialState::kCompleted) return "";
  const double epochs = static_cast<double>(completed.intermediate.rbegin()->first) / kEpoch;
  const std::pair<const char*, int64_t> keys[] = {
      {"warmup_steps", pruner.warmup_steps}, {"min_resource", pruner.min_resource.value_or(0)}};
  for (const auto& [key, value] : keys) {
    if (!PrunerTakes(pruner, key) || static_cast<double>(value) < epochs) continue;
    return absl::StrFormat(
        "pruner.%s: expected less than %g, the epochs of trial #%d, got %d: of trials that report "
        "epochs it counts epochs, not steps, and no trial is ever stopped",
        key, epochs, completed.number.value, value);
  }
  return "";
}

std::unique_ptr<Pruner> MakePruner(const StudySpec& study) {
  // With several objectives there is no one value to compare.
  if (study.objectives.size() != 1) return std::make_unique<NoPruner>();
  std::unique_ptr<Pruner> pruner = MakeOfType(study.pruner.type, study);
  return pruner == nullptr ? std::make_unique<NoPruner>() : std::move(pruner);
}

}  // namespace hpo::sampler
