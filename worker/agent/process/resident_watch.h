// Notices host memory that a warm trainer does not give back: resident bytes that grow from one
// attempt to the next. Pure; one trainer process's.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "common/base/bytes.h"

namespace hpo::agent {

class ResidentWatch {
 public:
  // An attempt has ended, and the process holds `resident` bytes. `tensors`: the most that the
  // attempt's tensors took of host memory (0: they were on a card). A heap keeps what it once
  // needed for them, so that growing up to the largest of these so far is no leak.
  //
  // The growth over the last kAttempts attempts, where it is a leak: without its kJumps largest
  // rises, which are a library's first use or a larger model, it still exceeds the margin.
  std::optional<Bytes> AfterAttempt(Bytes resident, Bytes tensors);

  static constexpr size_t kAttempts = 8;
  static constexpr size_t kJumps = 2;
  // 5 % of what is resident, but at least 64 MiB.
  static Bytes Margin(Bytes resident);

 private:
  static constexpr size_t kSettling = 2;  // attempts of a new process that are not judged

  Bytes largest_tensors_;
  std::vector<Bytes> held_;  // beyond tensors, after each attempt
};

}  // namespace hpo::agent
