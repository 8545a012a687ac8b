// What hpo_dryrun says (python/dryrun/hpo_dryrun/__init__.py), as the report of a dry run. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/protocol/preflight.h"

namespace hpo::agent {

// Lines of its errors that are looked at.
constexpr int kComplaintLines = 20;

// What a dry run has left.
struct DryRunEnd {
  std::string document;   // standard output: one JSON document, or nothing
  std::string complaint;  // the last lines of standard error
  std::string how;        // it ended, "exited with status 1"
  bool timed_out = false;
  absl::Duration took;
};

// The report of the dry run `id` for `gpus` (GpusOfDryRun). Where the least memory of the worker's
// own GPU is not known, what the program requires without freeing its cache is the bound.
PreflightReport ReportOf(const std::string& id, const std::vector<DeviceProfile>& gpus,
                         const DryRunEnd& end);

// A report that says why there is none.
PreflightReport FailedReport(const std::string& id, const DeviceProfile& own, absl::string_view why,
                             absl::Duration took);

// "requires 9.8 GiB of 12.0 GiB, dry-run in 8 s".
std::string DescribeReport(const PreflightReport& report, Bytes total);

}  // namespace hpo::agent
