// Wilcoxon's signed-rank test of paired differences.
#pragma once

#include <vector>

namespace hpo::sampler {

// The probability of a rank sum of positive differences at least as large as theirs, if each
// difference were as likely to have the other sign: small where they are positive beyond chance.
// Zeros are ranked with the others, and half of their ranks count as positive. Exact for up to 50
// differences that are distinct in size and not zero, and for up to 13 of any; else a normal
// approximation, corrected for ties. `differences` are finite and at least one.
// Source: Pratt and Gibbons 1981, chapter 3; the choice of method as in SciPy 1.17.
double SignedRankTest(const std::vector<double>& differences);

}  // namespace hpo::sampler
