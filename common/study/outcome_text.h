// How a trial ended, in words. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "common/study/trial.h"

namespace hpo {

// Six significant digits at most: "0.71312", "3e-05".
std::string ShortNumber(double value);

// Metrics, or what went wrong: "macro_f1 0.71, loss 0.4", "stopped by the median pruner at step 40,
// macro_f1 0.5", a failure's message with all its lines.
std::string DescribeOutcome(const TrialOutcome& outcome);

// Texts beyond their limit (common/base/limits.h) lose their middle.
void ShortenTexts(TrialOutcome& outcome);

// The last line of `text` that is not blank: of a traceback the one that names the error.
std::string LastLine(absl::string_view text);

}  // namespace hpo
