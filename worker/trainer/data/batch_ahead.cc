#include "worker/trainer/data/batch_ahead.h"

#include <utility>

namespace hpo::trainer {

BatchAhead::BatchAhead(Assemble assemble)
    : assemble_(std::move(assemble)), thread_([this] { Run(); }) {}

BatchAhead::~BatchAhead() {
  {
    const absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

void BatchAhead::Start(text::BatchRows rows) {
  rows_ = std::move(rows);
  Order order([this, wanted = rows_] { return assemble_(wanted); });
  batch_ = order.get_future();
  const absl::MutexLock lock(&mutex_);
  order_ = std::move(order);
}

text::TokenBatch BatchAhead::Take(const text::BatchRows& rows) {
  if (!batch_.valid() || rows_ != rows) return assemble_(rows);
  if (std::optional<Order> untouched = TakeOrder()) (*untouched)();
  return batch_.get();
}

std::optional<BatchAhead::Order> BatchAhead::TakeOrder() {
  const absl::MutexLock lock(&mutex_);
  return std::exchange(order_, std::nullopt);
}

void BatchAhead::Run() {
  while (true) {
    std::optional<Order> order;
    {
      const absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &BatchAhead::HasWork));
      if (ending_) return;
      order = std::exchange(order_, std::nullopt);
    }
    (*order)();
  }
}

}  // namespace hpo::trainer
