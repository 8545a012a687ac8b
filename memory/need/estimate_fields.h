// The fields of a memory estimate, and of an answer with one.
#pragma once

#include "common/base/fields/json_fields.h"
#include "memory/need/memory_estimate.h"

namespace hpo::memory {

void VisitFields(Is<MemoryEstimate> auto& estimate, auto visit) {
  visit({.key = "weights", .zero_is_known = true}, estimate.weights);
  visit({.key = "gradients", .zero_is_known = true}, estimate.gradients);
  visit({.key = "optimizer", .zero_is_known = true}, estimate.optimizer);
  visit({.key = "activations", .zero_is_known = true}, estimate.activations);
  visit({.key = "head", .zero_is_known = true}, estimate.head);
  visit({.key = "workspaces", .zero_is_known = true}, estimate.workspaces);
  visit({.key = "base", .zero_is_known = true}, estimate.base);
  visit({.key = "live_peak", .zero_is_known = true}, estimate.live_peak);
  visit({.key = "expected_live_peak", .zero_is_known = true}, estimate.expected_live_peak);
  visit({.key = "expected_reserved_peak", .zero_is_known = true}, estimate.expected_reserved_peak);
  visit({.key = "reserved_peak", .zero_is_known = true}, estimate.reserved_peak);
  visit({.key = "needed_limit", .zero_is_known = true}, estimate.needed_limit);
  visit({"peak_phase"}, estimate.peak_phase);
}

void VisitFields(Is<MemoryAnswer> auto& answer, auto visit) {
  visit({"estimate"}, answer.estimate);
  visit({"plan"}, answer.plan);
  visit({"fits"}, answer.fits);
  visit({"usable"}, answer.usable);
  visit({"explanation"}, answer.explanation);
}

}  // namespace hpo::memory
