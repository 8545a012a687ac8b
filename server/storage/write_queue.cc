#include "server/storage/write_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo::server {
namespace {

constexpr size_t kLargestBatch = 256;

absl::Status BehindError() {
  return absl::UnavailableError(
      "the database holds a write that was reported as failed; the server reads it again");
}

}  // namespace

WriteQueue::WriteQueue(std::unique_ptr<Database> database, Guard guard)
    : database_(std::move(database)), guard_(std::move(guard)), writer_([this] { RunLoop(); }) {}

WriteQueue::~WriteQueue() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  writer_.join();
}

absl::Status WriteQueue::Write(Work work, AfterCommit after_commit) {
  Entry entry{.work = std::move(work), .after_commit = std::move(after_commit)};
  return Enqueue(entry);
}

absl::Status WriteQueue::CatchUp(Work read) {
  Entry entry{.work = std::move(read), .after_commit = nullptr, .catches_up = true};
  return Enqueue(entry);
}

absl::Status WriteQueue::Enqueue(Entry& entry) {
  {
    absl::MutexLock lock(&mutex_);
    queue_.push_back(&entry);
  }
  entry.done.WaitForNotification();
  return entry.status;
}

bool WriteQueue::behind() const {
  absl::MutexLock lock(&mutex_);
  return behind_;
}

absl::Status WriteQueue::last_commit() const {
  absl::MutexLock lock(&mutex_);
  return last_commit_;
}

WriteQueue::Stats WriteQueue::stats() const {
  absl::MutexLock lock(&mutex_);
  Stats stats = stats_;
  stats.waiting = static_cast<int64_t>(queue_.size());
  return stats;
}

void WriteQueue::RunLoop() {
  for (;;) {
    std::vector<Entry*> batch;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !queue_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      if (queue_.empty()) return;
      const size_t size = std::min(queue_.size(), kLargestBatch);
      batch.assign(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(size));
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(size));
    }
    RunBatch(batch);
  }
}

void WriteQueue::RunBatch(const std::vector<Entry*>& batch) {
  absl::Status committed = CommitBatch(batch);
  if (!committed.ok()) {
    committed = absl::UnavailableError(absl::StrCat("nothing was stored: ", committed.message()));
  }
  {
    absl::MutexLock lock(&mutex_);
    last_commit_ = committed;
    if (committed.ok()) {
      ++stats_.commits;
      stats_.writes += static_cast<int64_t>(batch.size());
    }
  }
  for (Entry* entry : batch) {
    // Also one that failed by itself: what it went by was undone.
    if (!committed.ok()) entry->status = committed;
    if (entry->status.ok() && entry->after_commit) entry->after_commit();
    // The entry lives on its caller's stack: not to be touched after this.
    entry->done.Notify();
  }
}

absl::Status WriteQueue::CommitBatch(const std::vector<Entry*>& batch) {
  if (guard_) HPO_RETURN_IF_ERROR(guard_());
  HPO_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
  HPO_ASSIGN_OR_RETURN(bool caught_up, IsCaughtUp());
  for (Entry* entry : batch) {
    if (!caught_up && !entry->catches_up) {
      entry->status = BehindError();
      continue;
    }
    HPO_RETURN_IF_ERROR(RunInSavepoint(*entry));
    caught_up = caught_up || entry->status.ok();
  }
  if (!caught_up) return BehindError();
  HPO_RETURN_IF_ERROR(database_->Prepare("UPDATE server SET batch = batch + 1").Run());
  HPO_ASSIGN_OR_RETURN(const Stamp stamp, ReadStamp());
  HPO_RETURN_IF_ERROR(transaction.Commit());
  stamp_ = stamp;
  absl::MutexLock lock(&mutex_);
  behind_ = false;
  return absl::OkStatus();
}

absl::StatusOr<bool> WriteQueue::IsCaughtUp() {
  HPO_ASSIGN_OR_RETURN(const Stamp stored, ReadStamp());
  if (!stamp_ || stored == *stamp_) return true;
  if (stored.epoch != stamp_->epoch) {
    return absl::UnavailableError(absl::StrCat(
        "database ", database_->path(), ": expected to be its only server (start ", stamp_->epoch,
        "), got another that started later (start ", stored.epoch, "); end one of the two"));
  }
  absl::MutexLock lock(&mutex_);
  behind_ = true;
  return false;
}

absl::StatusOr<WriteQueue::Stamp> WriteQueue::ReadStamp() {
  Statement row = database_->Prepare("SELECT epoch, batch FROM server");
  HPO_RETURN_IF_ERROR(row.Next().status());
  return Stamp{.epoch = row.Int(0), .batch = row.Int(1)};
}

// OK while the batch is whole, whatever the entry's own status.
absl::Status WriteQueue::RunInSavepoint(Entry& entry) {
  HPO_RETURN_IF_ERROR(database_->Prepare("SAVEPOINT entry").Run());
  entry.status = entry.work(*database_);
  if (!database_->InTransaction()) {
    if (!entry.status.ok()) return entry.status;
    return absl::UnavailableError("SQLite rolled the transaction back");
  }
  if (!entry.status.ok()) HPO_RETURN_IF_ERROR(database_->Prepare("ROLLBACK TO entry").Run());
  return database_->Prepare("RELEASE entry").Run();
}

}  // namespace hpo::server
