#include "common/status.h"
#include "sampler/median_pruner.h"
#include "sampler/pruner.h"

namespace hpo {
namespace {

class NoPruner final : public Pruner {
 public:
  std::optional<PruneDecision> Decide(const History&, TrialNumber) const override {
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<Pruner> MakePruner(const StudySpec& study) {
  // With several objectives there is no one value to compare.
  const bool never = study.pruner.type == "none" || study.objectives.size() != 1;
  if (never) return std::make_unique<NoPruner>();
  HPO_CHECK(study.pruner.type == "median");
  return std::make_unique<MedianPruner>(study.pruner, study.objectives.front().direction);
}

}  // namespace hpo
