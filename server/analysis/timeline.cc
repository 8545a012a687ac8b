#include "server/analysis/timeline.h"

#include <algorithm>

#include "common/base/status.h"
#include "server/trials/time_by_use.h"

namespace hpo::server {

absl::StatusOr<Timeline> ReadTimeline(Database& database, int64_t study_id, int64_t count) {
  Timeline timeline;
  Statement rows = database.Prepare(
      "SELECT worker, number, attempt, started, ended, state, "
      "COALESCE(json_extract(outcome, '$.kind'), '') FROM attempt "
      "WHERE study_id = ?1 AND worker <> 'imported' "
      "ORDER BY started DESC, number DESC, attempt DESC LIMIT ?2");
  rows.Bind(study_id, count);
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) break;
    timeline.entries.push_back({.worker = rows.Text(0),
                                .trial = TrialNumber{rows.Int(1)},
                                .attempt = AttemptNumber{rows.Int(2)},
                                .started = rows.Time(3),
                                .ended = rows.Time(4)});
    if (rows.IsNull(4)) continue;
    timeline.entries.back().use = LetterOf(UseOf(rows.Text(5), rows.Text(6)));
  }
  std::reverse(timeline.entries.begin(), timeline.entries.end());
  Statement all =
      database.Prepare("SELECT COUNT(*) FROM attempt WHERE study_id = ?1 AND worker <> 'imported'");
  HPO_RETURN_IF_ERROR(all.Bind(study_id).Next().status());
  timeline.left_off = all.Int(0) - static_cast<int64_t>(timeline.entries.size());
  return timeline;
}

}  // namespace hpo::server
