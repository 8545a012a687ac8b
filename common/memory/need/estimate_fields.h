// The fields of a memory estimate.
#pragma once

#include "common/base/fields/json_fields.h"
#include "common/memory/need/memory_estimate.h"

namespace hpo {

void VisitFields(Is<MemoryEstimate> auto& estimate, auto visit) {
  visit({"weights"}, estimate.weights);
  visit({"gradients"}, estimate.gradients);
  visit({"optimizer"}, estimate.optimizer);
  visit({"activations"}, estimate.activations);
  visit({"head"}, estimate.head);
  visit({"workspaces"}, estimate.workspaces);
  visit({"base"}, estimate.base);
  visit({"live_peak"}, estimate.live_peak);
  visit({"expected_live_peak"}, estimate.expected_live_peak);
  visit({"expected_reserved_peak"}, estimate.expected_reserved_peak);
  visit({"reserved_peak"}, estimate.reserved_peak);
  visit({"needed_limit"}, estimate.needed_limit);
  visit({"peak_phase"}, estimate.peak_phase);
}

}  // namespace hpo
