// The next batch is put together on a thread while the current one trains.
//
// What a batch is depends on its rows alone, so that nothing but time depends on what was started:
// another plan, a batch that is redone or an attempt that goes on elsewhere simply takes other
// rows. Free of torch: tensors are made in the step, where memory is counted.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/text/batching/batcher.h"

namespace hpo::trainer {

// Used from one thread; has another of its own, which ends with it.
class BatchAhead {
 public:
  // A function of the rows alone; called by either thread, or by both at once.
  using Assemble = std::function<text::TokenBatch(const text::BatchRows&)>;

  explicit BatchAhead(Assemble assemble);
  ~BatchAhead();
  BatchAhead(const BatchAhead&) = delete;
  BatchAhead& operator=(const BatchAhead&) = delete;

  // Begins the batch of these rows. What was begun before and not taken is dropped.
  void Start(text::BatchRows rows);

  // The batch of these rows: the one that was begun, which is waited for, or where that is of other
  // rows or still lies there untouched, made here. Throws what `assemble` throws for these rows,
  // whichever thread ran it.
  text::TokenBatch Take(const text::BatchRows& rows);

 private:
  using Order = std::packaged_task<text::TokenBatch()>;

  void Run();
  std::optional<Order> TakeOrder();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return order_.has_value() || ending_;
  }

  const Assemble assemble_;
  text::BatchRows rows_;                 // what was begun,
  std::future<text::TokenBatch> batch_;  // and what comes of it
  absl::Mutex mutex_;
  std::optional<Order> order_ ABSL_GUARDED_BY(mutex_);  // that nobody works on yet
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hpo::trainer
