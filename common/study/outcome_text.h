// How a trial ended, in words. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "common/study/trial.h"

namespace hpo {

// Six significant digits at most: "0.71312", "3e-05".
std::string ShortNumber(double value);

// Metrics, or what went wrong, as one line: "macro_f1 0.71, loss 0.4", "stopped by the median
// pruner at step 40, macro_f1 0.5". Of a failure's message with several lines: the error that its
// last traceback names; else what the worker says and the last line that the program printed.
std::string DescribeOutcome(const TrialOutcome& outcome);

// The same, with all lines of a failure's message.
std::string WholeOutcome(const TrialOutcome& outcome);

// What stands between a failure's cause and the last lines that the program printed.
constexpr absl::string_view kLastOutput = "; its last output:";

// Texts beyond their limit (common/base/limits.h) lose their middle.
void ShortenTexts(TrialOutcome& outcome);

}  // namespace hpo
