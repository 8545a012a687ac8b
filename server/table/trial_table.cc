#include "server/table/trial_table.h"

#include <algorithm>
#include <set>

#include "common/base/status.h"
#include "server/storage/event_log.h"
#include "server/storage/records.h"
#include "server/table/table_rows.h"

namespace hpo::server {
namespace {

constexpr int kEventBatch = 4096;
// So many changes at once (an import) are read faster with all trials; and older events may have
// been forgotten.
constexpr int64_t kMostChanges = 20'000;

// The trials of the events after `sequence`, which becomes that of the last one.
absl::StatusOr<std::set<TrialNumber>> ChangedAfter(const EventLog& events, int64_t& sequence) {
  std::set<TrialNumber> changed;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const auto batch, events.After(sequence, kEventBatch));
    for (const EventLog::Event& event : batch) {
      if (event.trial != kNoTrial) changed.insert(event.trial);
      sequence = event.sequence;
    }
    if (batch.size() < kEventBatch) return changed;
  }
}

}  // namespace

absl::Status TrialTable::Refresh(const Store& store, const StudyRuntime& study) {
  const int64_t last = study.changes.last();
  if (last == sequence_) return absl::OkStatus();
  return store.Read([&](Database& database) -> absl::Status {
    mutex_.AssertHeld();
    const TableRows rows(database, study.id(), study.name());
    const auto take = [this](const TableRow& row) {
      mutex_.AssertHeld();
      columns_.Set(row);
    };
    if (sequence_ < 0 || last - sequence_ > kMostChanges) {
      HPO_RETURN_IF_ERROR(rows.Visit(std::nullopt, take));
      // What is committed meanwhile is read again: its events come after `last`.
      sequence_ = last;
      return absl::OkStatus();
    }
    int64_t sequence = sequence_;
    HPO_ASSIGN_OR_RETURN(const std::set<TrialNumber> changed,
                         ChangedAfter(EventLog(database, study.id()), sequence));
    for (const TrialNumber number : changed) {
      HPO_RETURN_IF_ERROR(rows.Visit(number, take));
    }
    sequence_ = std::max(sequence, last);
    return absl::OkStatus();
  });
}

absl::Status TrialTable::Use(const Store& store, const StudyRuntime& study,
                             const std::function<absl::Status(const TrialColumns&, int64_t)>& use) {
  absl::MutexLock lock(&mutex_);
  HPO_RETURN_IF_ERROR(Refresh(store, study));
  return use(columns_, sequence_);
}

std::shared_ptr<TrialTable> TrialTables::Of(int64_t study_id) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<TrialTable>& table = tables_[study_id];
  if (table == nullptr) table = std::make_shared<TrialTable>();
  return table;
}

void TrialTables::Keep(const std::function<bool(int64_t)>& is_there) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(tables_, [&is_there](const auto& one) { return !is_there(one.first); });
}

}  // namespace hpo::server
