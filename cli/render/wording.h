// How single values are put to people. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/study/study_status.h"
#include "common/study/trial.h"

namespace hpo::cli {

// "45s", "3m10s", "1h12m", "2d4h": two units at most.
std::string ShortDuration(absl::Duration duration);

// The fewest significant digits, at least 4 and at most 12, by which all different `values` differ.
int DigitsThatTell(const std::vector<double>& values);
std::string NumberOf(double value, int digits);

// "-" where there is none.
std::string OrDash(const std::optional<double>& value);
std::string OrDash(Bytes size);  // 0 is unknown

// As ShortDuration; "-" for what has not ended.
std::string TakenText(absl::Time started, absl::Time ended);

// "2026-11-21 11:07:27" in local time; "-" for a time that has not come.
std::string LocalTime(absl::Time time);

// The latest that is known of a metric: the outcome's, else the last measurement's.
std::optional<double> MetricOf(const Trial& trial, const std::string& metric);

// "#7".
std::string Hash(TrialNumber number);

// "COMPLETED", "COMPLETED (infeasible)", "PRUNED (OUT_OF_MEMORY)", "FAILED (BAD_DATA)"; "RUNNING".
std::string DescribeState(const Trial& trial);

// How it ended, to follow its state: metrics, or what went wrong. Empty while it is open.
std::string DescribeEnd(const Trial& trial);

// "64 = 8 x 8", with checkpointing and precision where they are not the default.
std::string DescribePlan(const MemoryPlan& plan);

// "+1.00 GiB", "-3.00 MiB"; "-" where there is nothing before.
std::string ChangeText(const std::optional<Bytes>& change);

// What became of allocated bytes since the attempt's memory record before `index`; nullopt: it is
// the first.
std::optional<Bytes> AllocatedChange(const Attempt& attempt, size_t index);

// What a memory record says beyond its sizes: the new plan, what was predicted or needed, what
// grew.
std::string DescribeRecord(const MemoryRecord& record);

// "12 of 100", "12 (no limit)".
std::string DescribeProgress(const StudyStatus& study);

// "0.7131 (#12)", "0.7131 (#12, infeasible)"; "-" where no trial has completed. Of several
// objectives, the front: "front #12 #7 #4 and 9 more".
std::string DescribeBest(const StudyStatus& study);

// Each trial of the front with its values: "#12 macro_f1 0.71, latency 10.5".
std::vector<std::string> DescribeFront(const StudyStatus& study);

// What a completed trial reported on a constraint that it violates: "latency_ms at most 50:
// reported 61.2". Empty where it keeps the constraint, or has not completed.
std::string DescribeExcess(const Trial& trial, const MetricConstraint& constraint);

// Note, tags and attributes, a line each, every name padded to `width` columns; empty: none.
std::string AttributeLines(const Attributes& attributes, int width);

// "21 in 3m10s: 9 did not fit, 1 failed; saved about 24m of a GPU".
std::string DescribeDryRuns(const DryRunCounts& counts);

// "OOM 2 met (1 recovered), 1 predicted".
std::string DescribeOoms(const TrialCounts& counts);

}  // namespace hpo::cli
