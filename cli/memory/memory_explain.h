// Why a trial fit its card or did not: what `hpo memory explain` shows. Pure: values in, text out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/client/session.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo::cli {

struct AttemptExplanation {
  AttemptNumber number;
  std::string worker;
  MemoryPlan plan;  // what it ended with
  bool replanned = false;
  MemoryPlan first_plan;  // that it began with
  Bytes predicted;        // for `first_plan`; 0: no estimate
  Bytes used;             // 0: not told
  // Of what `used` is: "device" (the process' share of the card), "reserved" or "live"; empty.
  std::string measured;
  Bytes allowed;
  std::string peak_phase;
  int64_t num_ooms = 0;
  // (used - predicted) / predicted; only where both are known of one plan.
  std::optional<double> error;
  std::string lesson;  // what calibration and sampler took from it
};

struct TrialExplanation {
  TrialNumber number;
  std::string state;
  std::string verdict;  // why it fit or did not
  std::vector<AttemptExplanation> attempts;
};

TrialExplanation ExplainTrial(const Trial& trial);

nlohmann::ordered_json ExplanationJson(const TrialExplanation& explanation);
std::string ExplanationText(const TrialExplanation& explanation, int width);

// A trial's predicted and measured bytes, attempt by attempt, why it fit or did not, and what that
// taught.
absl::Status ExplainTrialMemory(Session& session, TrialNumber number);

}  // namespace hpo::cli
