// Every k-th operation on the database's files fails once, or from there on for a while.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/chaos/faulty_files/faulty_study.h"

namespace hpo {

struct SweepOptions {
  // Of the operations of a study, `first` (from 1), and every `stride`-th after it.
  int64_t first = 1;
  int64_t stride = 1;
  int64_t num_trials = 20;
};

struct SweepResult {
  int64_t num_studies = 0;  // that met a fault
  int64_t num_failed_calls = 0;
  std::map<std::string, int64_t> faults_by_kind;
  std::vector<std::string> not_recovered;  // the fault, and the rule that was broken
};

SweepResult SweepFaults(const SweepOptions& options);

}  // namespace hpo
