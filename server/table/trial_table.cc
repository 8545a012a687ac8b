#include "server/table/trial_table.h"

#include <algorithm>
#include <set>

#include "common/base/status.h"
#include "common/threads/parallel.h"
#include "server/storage/event_log.h"
#include "server/storage/records.h"
#include "server/table/table_rows.h"

namespace hpo::server {
namespace {

constexpr int kEventBatch = 4096;
constexpr int64_t kPart = 4096;  // trials that one thread reads at once
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

// Sets all trials, which are read in parts at the same time: most of it is to parse JSON.
absl::Status ReadAll(const Store& store, const StudyRuntime& study, TrialColumns& columns) {
  TrialNumber last = kNoTrial;
  HPO_RETURN_IF_ERROR(store.Read([&](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(last, TableRows(database, study.id(), study.name()).Last());
    return absl::OkStatus();
  }));
  absl::Mutex taking;
  absl::Status status;
  const auto take = [&](const TableRow& row) {
    const absl::MutexLock lock(&taking);
    columns.Set(row);
  };
  const auto read_part = [&](size_t part) {
    const TrialNumber first{static_cast<int64_t>(part) * kPart};
    const absl::Status read = store.Read([&](Database& database) {
      return TableRows(database, study.id(), study.name())
          .Visit(first, {first.value + kPart - 1}, take);
    });
    const absl::MutexLock lock(&taking);
    status.Update(read);
  };
  ForEachInParallel(static_cast<size_t>((last.value + kPart) / kPart), read_part);
  return status;
}

}  // namespace

absl::Status TrialTable::Refresh(const Store& store, const StudyRuntime& study) {
  const int64_t last = study.changes.last();
  if (last == sequence_) return absl::OkStatus();
  if (sequence_ < 0 || last - sequence_ > kMostChanges) {
    HPO_RETURN_IF_ERROR(ReadAll(store, study, columns_));
    // What is committed meanwhile is read again: its events come after `last`.
    sequence_ = last;
    return absl::OkStatus();
  }
  return store.Read([&](Database& database) -> absl::Status {
    mutex_.AssertHeld();
    const TableRows rows(database, study.id(), study.name());
    const auto take = [this](const TableRow& row) {
      mutex_.AssertHeld();
      columns_.Set(row);
    };
    int64_t sequence = sequence_;
    HPO_ASSIGN_OR_RETURN(const std::set<TrialNumber> changed,
                         ChangedAfter(EventLog(database, study.id()), sequence));
    for (const TrialNumber number : changed) {
      HPO_RETURN_IF_ERROR(rows.Visit(number, number, take));
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

std::shared_ptr<TrialTable> TrialTables::Of(const StudyRuntime::Identity& study) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<TrialTable>& table = tables_[study];
  if (table == nullptr) table = std::make_shared<TrialTable>();
  return table;
}

void TrialTables::Keep(const std::function<bool(const StudyRuntime::Identity&)>& is_there) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(tables_, [&is_there](const auto& one) { return !is_there(one.first); });
}

}  // namespace hpo::server
