// The fields of common/protocol/preflight.h.
#pragma once

#include "common/protocol/preflight.h"
#include "common/protocol/worker_exchange_fields.h"
#include "common/protocol/worker_facts_fields.h"

namespace hpo {

template <>
struct NamesOf<PreflightState> {
  static constexpr const char* kNames[] = {"measured", "uncertain", "failed"};
  static constexpr char kMeans[] = "the state of a dry run";
};

void VisitFields(Is<Preflight> auto& preflight, auto visit) {
  visit({"id"}, preflight.id);
  visit({"assignment"}, preflight.assignment);
  visit({"others"}, preflight.others);
}

void VisitFields(Is<PreflightNeed> auto& need, auto visit) {
  visit({"capability"}, need.capability);
  visit({"threads"}, need.threads);
  visit({"state"}, need.state);
  visit({"required"}, need.required);
  visit({"margin"}, need.margin);
}

void VisitFields(Is<PreflightReport> auto& report, auto visit) {
  visit({"id"}, report.id);
  visit({"needs"}, report.needs);
  visit({"took"}, report.took);
  visit({"message"}, report.message);
}

}  // namespace hpo
