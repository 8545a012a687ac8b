// Faults at the seam between torch and memory: refuses the k-th allocation, and counts them.
#pragma once

#include <cstdint>

#include "worker/trainer/memory/counting_allocator.h"

namespace hpo::trainer {

// Watches the process's allocator for as long as it lives. One thread allocates meanwhile.
class FailingAllocations final : public AllocationWatcher {
 public:
  FailingAllocations() { CountingAllocator::Install().SetWatcher(this); }
  ~FailingAllocations() override { CountingAllocator::Install().SetWatcher(nullptr); }

  // Refuses the `k`-th allocation from now, counted from 1, and no other; 0: none.
  void FailAt(int64_t k) {
    count_ = 0;
    fail_at_ = k;
  }

  // Allocations asked for since FailAt.
  int64_t count() const { return count_; }

  bool Admit(Bytes) override { return ++count_ != fail_at_; }
  void Allocated(const void*, Bytes) override {}
  void Freed(const void*, Bytes) override {}

 private:
  int64_t count_ = 0;
  int64_t fail_at_ = 0;
};

}  // namespace hpo::trainer
