// What `--output json` prints: stable names, typed values, sizes in bytes, times in RFC 3339.
// Fields are only ever added. What has no value yet is null.
#pragma once

#include <ostream>
#include <vector>

#include "common/study/study_status.h"
#include "common/study/trial_view.h"
#include "memory/need/memory_estimate.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo::cli {

// The document on lines of its own, indented.
void PrintJson(const nlohmann::ordered_json& json, std::ostream& out);

// {"workers": [...]}, each as in a study's.
nlohmann::ordered_json WorkersJson(const std::vector<WorkerStatus>& workers);

nlohmann::ordered_json StudyJson(const StudyStatus& study);

// `view` with attempts and measurements.
nlohmann::ordered_json TrialJson(const TrialView& view);

// Without them: what lists carry.
nlohmann::ordered_json TrialJson(const Trial& trial);

nlohmann::ordered_json DomainJson(const Domain& domain);

nlohmann::ordered_json MemoryJson(const memory::MemoryAnswer& verdict);

}  // namespace hpo::cli
