// How much of a study's search space fits which card.
//
// Configurations are counted over the parameters that matter to memory, and those that decide
// whether they exist or how far they go; a learning rate or a seed multiplies nothing. Continuous
// ones among them (model.dropout) stand at their upper end, where they need most.
// What bounds leave open is replayed from the middle of what is open: a configuration that is no
// larger in rows, tokens and the head's layers than one that fits is taken to fit, one that is no
// smaller than a misfit not. (None is admitted by this: FitDecider replays the very one that is.)
// Pure and deterministic; safe from any thread, and takes some of its own; about 10 us a
// configuration, a millisecond where layers are computed again or some are frozen, and a few
// milliseconds for each replay, some tens for each card.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "memory/plan/fit_decision.h"
#include "memory/plan/space_cut.h"

namespace hpo::memory {

struct SurveyOptions {
  std::vector<Bytes> cards;
  // Where the space has more configurations than this, that many are drawn instead.
  int64_t most_configurations = 50'000;
  uint64_t seed = 0;
};

// Of one policy on one card.
struct PolicyCount {
  int64_t fits = 0;
  int64_t does_not_fit = 0;
  int64_t unknown = 0;          // nothing is known of them on this card: they would be tried
  std::optional<SpaceCut> cut;  // see FitTallies::BestCut
};

struct CardSurvey {
  Bytes capacity;
  Bytes usable;
  PolicyCount strict;
  PolicyCount plan;
};

struct ModelSurvey {
  std::string name;  // empty: the space does not choose a model
  int64_t configurations = 0;
  bool known = true;       // false: nothing is known of its memory
  Bytes smallest_literal;  // smallest need of any configuration, with margin, at its word ...
  Bytes smallest_plan;     // ... and at micro-batch 1
  Bytes largest_literal;
  std::vector<int64_t> strict_fits;  // by card
  std::vector<int64_t> plan_fits;
};

struct SpaceSurvey {
  int64_t configurations = 0;
  bool sampled = false;
  int64_t unknown = 0;                  // configurations of which nothing is known on any card
  std::vector<std::string> parameters;  // that were enumerated
  std::vector<ModelSurvey> models;      // in the order of the choices
  std::vector<CardSurvey> cards;        // as asked
};

// `decider` knows the study's models; its policy does not matter.
//   InvalidArgument     no cards; a value that is no training configuration
//   FailedPrecondition  constraints leave nothing of the space
absl::StatusOr<SpaceSurvey> SurveySpace(const StudySpec& study, const FitDecider& decider,
                                        const SurveyOptions& options);

}  // namespace hpo::memory
