// What monitoring wants of the server, in Prometheus's text format, version 0.0.4 (its documents,
// "Exposition formats"): a scrape reads it from --metrics.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/protocol/server_status.h"
#include "common/study/study_status.h"

namespace hpo::server {

inline constexpr absl::string_view kMetricsContentType = "text/plain; version=0.0.4";

// `studies`: those that can be read at the moment; each makes about twenty lines. Counts of trials
// are gauges: a trial that waits again leaves the state it was in.
std::string MetricsText(const ServerStatus& server, const std::vector<StudyStatus>& studies);

}  // namespace hpo::server
