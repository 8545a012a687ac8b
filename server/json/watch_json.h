// Changes of a study as JSON: what WatchStudy sends, for the page's streams of events.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/api/study_queries.h"

namespace hpo::server {

struct JsonEvent {
  std::string name;  // "snapshot", "change" or "bookmark"
  int64_t sequence = 0;
  std::string data;
  // Of a change:
  int64_t trial = -1;
  std::string kind;  // TrialChange::kind
};

// As StudyQueries::WatchStudy from now on; the first event is a snapshot.
absl::Status WatchJson(const StudyQueries& queries, const std::string& study,
                       const std::function<void(JsonEvent)>& emit,
                       const std::function<bool()>& cancelled);

// The study as it is now.
absl::StatusOr<JsonEvent> SnapshotJson(const StudyQueries& queries, const std::string& study);

}  // namespace hpo::server
