// A study's ranges are edited. The study is then read again from its rows, as at a start, so that
// what its sampler knows is what a restart would make of them.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "common/protocol/study_exchange.h"
#include "server/studies/scheduler_state.h"

namespace hpo::server {

// The study's changed file, or ranges by parameter.
using SpecChange = std::variant<StudySpec, std::map<std::string, Domain>>;

// The result without the study. Codes: StudyApi::EditStudy. From any thread.
absl::StatusOr<EditResult> EditStudy(SchedulerState& state, const std::string& name,
                                     const SpecChange& change, bool validate_only);

}  // namespace hpo::server
