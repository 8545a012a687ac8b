#include "server/storage/write_queue.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace hpo {
namespace {

constexpr size_t kLargestBatch = 256;

}  // namespace

WriteQueue::WriteQueue(std::unique_ptr<Database> database)
    : database_(std::move(database)), writer_([this] { RunLoop(); }) {}

WriteQueue::~WriteQueue() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  writer_.join();
}

absl::Status WriteQueue::Write(Work work, AfterCommit after_commit) {
  Entry entry{.work = std::move(work), .after_commit = std::move(after_commit)};
  {
    absl::MutexLock lock(&mutex_);
    queue_.push_back(&entry);
  }
  entry.done.WaitForNotification();
  return entry.status;
}

WriteQueue::Stats WriteQueue::stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
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
  const absl::Status committed = CommitBatch(batch);
  if (committed.ok()) {
    absl::MutexLock lock(&mutex_);
    ++stats_.commits;
    stats_.writes += static_cast<int64_t>(batch.size());
  }
  for (Entry* entry : batch) {
    if (entry->status.ok()) entry->status = committed;
    if (entry->status.ok() && entry->after_commit) entry->after_commit();
    // The entry lives on its caller's stack: not to be touched after this.
    entry->done.Notify();
  }
}

absl::Status WriteQueue::CommitBatch(const std::vector<Entry*>& batch) {
  HPO_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
  for (Entry* entry : batch) {
    entry->status = RunInSavepoint(*entry);
  }
  return transaction.Commit();
}

absl::Status WriteQueue::RunInSavepoint(Entry& entry) {
  HPO_RETURN_IF_ERROR(database_->Prepare("SAVEPOINT entry").Run());
  const absl::Status status = entry.work(*database_);
  if (!status.ok()) {
    HPO_RETURN_IF_ERROR(database_->Prepare("ROLLBACK TO entry").Run());
  }
  HPO_RETURN_IF_ERROR(database_->Prepare("RELEASE entry").Run());
  return status;
}

}  // namespace hpo
