// Live bytes over the course of a computation: what it allocates and frees, in order, reduced to
// the two numbers that matter of it: where it ends, and its peak.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace hpo::memory {

// The largest size of one tensor that is told apart: 16 TiB. More than any device has, and small
// enough that no sum over a model can overflow.
constexpr int64_t kLargestTensorBytes = int64_t{1} << 44;

// Product of `factors` (each >= 0), at most kLargestTensorBytes.
int64_t TensorBytes(std::initializer_list<int64_t> factors);

// Live bytes relative to the start, parameter gradients apart from the rest. Value type; O(1).
class AllocationTimeline {
 public:
  struct Level {
    int64_t other = 0;
    int64_t gradients = 0;
    int64_t Total() const { return other + gradients; }
    bool operator==(const Level&) const = default;
  };

  // One level later.
  void Change(const Level& by);

  void Allocate(int64_t bytes);
  void Free(int64_t bytes);

  // Allocated, and freed before anything else happens.
  void Touch(int64_t bytes);

  // `part` happens `times` >= 0 times after what has happened so far.
  void Append(const AllocationTimeline& part, int64_t times = 1);

  const Level& now() const { return now_; }
  // The highest level by Total; the start (zero) when nothing was ever above it.
  const Level& peak() const { return peak_; }

 private:
  void Reach(const Level& level);

  Level now_;
  Level peak_;
};

}  // namespace hpo::memory
