#include "worker/trainer/memory/growth_watch.h"

#include <utility>

namespace hpo::trainer {

std::optional<Growth> GrowthWatch::After(const std::string& stage, Bytes live) {
  const Bytes change = live - std::exchange(live_, live);
  if (change < Bytes{}) {
    for (auto& [name, run] : runs_) run = {.told = run.told};
  }
  if (change <= Bytes{}) return std::nullopt;
  Run& run = runs_[stage];
  ++run.rises;
  run.grown += change;
  if (run.told || run.rises < kRises || run.grown <= kTolerance) return std::nullopt;
  run.told = true;
  return Growth{.stage = stage, .bytes = run.grown, .times = run.rises};
}

}  // namespace hpo::trainer
