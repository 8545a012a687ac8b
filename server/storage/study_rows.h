// All rows of one study's trials and dry runs, over one connection.
#pragma once

#include <cstdint>
#include <string>

#include "server/storage/attempt_store.h"
#include "server/storage/attribute_store.h"
#include "server/storage/dry_run_store.h"
#include "server/storage/event_log.h"
#include "server/storage/sqlite/database.h"
#include "server/storage/suggestion_store.h"
#include "server/storage/trial_store.h"

namespace hpo::server {

struct StudyRows {
  StudyRows(Database& database, int64_t study_id, const std::string& study)
      : trials(database, study_id, study),
        attempts(database, study_id, study),
        attributes(database, study_id),
        suggestions(database, study_id),
        dry_runs(database, study_id),
        events(database, study_id) {}

  TrialStore trials;
  AttemptStore attempts;
  AttributeStore attributes;
  SuggestionStore suggestions;
  DryRunStore dry_runs;
  EventLog events;
};

}  // namespace hpo::server
