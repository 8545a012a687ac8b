// Search for configurations that need little memory, one parameter at a time.
// Pure; safe from any thread. context.feasibility must not be empty.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sampler/space/candidate_pool.h"

namespace hpo::sampler {

// Values that show a domain's effect on memory: all of them up to 16, else 16 evenly spaced ones
// with both ends. Increasing for numbers.
std::vector<ParamValue> ProbeValues(const Domain& domain);

// `params` with parameter `name` set to `value` and made a valid configuration again: parameters
// that this makes active, or moves out of their allowed domain, take the lowest number or the first
// choice allowed. nullopt where `value` itself is not allowed, or another is left without a value.
std::optional<ParamMap> WithValue(const SearchSpace& space, const ParamMap& params,
                                  const std::string& name, const ParamValue& value);

// Ends at the first configuration that fits, or goes on to the least need it can find.
enum class CheapestGoal { kFirstThatFits, kLeastNeed };

// Walks from `start` to configurations of less need: each parameter in turn takes the probe value
// of least need, until a round changes nothing. At most 16 evaluations per parameter and round, in
// 4 rounds.
Candidate FindCheapest(const AskContext& context, Candidate start, CheapestGoal goal);

// The one of least need that a walk from a drawn configuration finds, the same every time; nullopt
// where constraints leave none.
std::optional<Candidate> LeastDemanding(const AskContext& context);

}  // namespace hpo::sampler
