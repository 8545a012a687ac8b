// Candidates checked against the known memory feasibility of an asking worker.
// One owner thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "sampler/api/sampler.h"

namespace hpo::sampler {

struct Candidate {
  ParamMap params;
  memory::Fit fit;
};

class CandidatePool {
 public:
  // `context` must outlive the pool.
  explicit CandidatePool(const AskContext& context) : context_(context) {}

  // Checks the drawn configurations in one batch; those that fit are kept, in order.
  void Add(std::vector<ParamMap> drawn);

  const AskContext& context() const { return context_; }
  const std::vector<Candidate>& fitting() const { return fitting_; }

  // Of the candidates that do not fit, the one that needs least; the first of equals.
  const std::optional<Candidate>& nearest_miss() const { return nearest_miss_; }

 private:
  const AskContext& context_;
  std::vector<Candidate> fitting_;
  std::optional<Candidate> nearest_miss_;
};

// Adds rounds of so many configurations to `pool` until one fits whose modelled part no trial of
// `history` has had, then some of what is left of a small space (AddUntried): that one. Where that
// space has no such left, and there is more than the modelled part, the first that fits. nullopt
// where none did. A draw that fails is left out.
std::optional<Candidate> DrawUntilNew(std::span<const int> rounds, const History& history,
                                      absl::FunctionRef<absl::StatusOr<ParamMap>()> draw, Rng& rng,
                                      CandidatePool& pool);

// Adds up to 192 of the configurations that no trial of `history` has had. False where the space is
// not a small one (UntriedOf), and nothing was added.
bool AddUntried(const History& history, Rng& rng, CandidatePool& pool);

// FailedPrecondition that names the need of the least demanding configuration found.
absl::Status NoneFits(const Candidate& nearest_miss, Bytes capacity);

// One configuration drawn uniformly among those that fit: `preset` where allowed, the rest at
// random, in bounded rounds; then without the preset; then by walking from the nearest miss towards
// cheaper values.
//   FailedPrecondition  constraints leave no configuration, or none found fits: names the need of
//                       the least violating one and the capacity
absl::StatusOr<Candidate> DrawFitting(const AskContext& context, const ParamMap& preset, Rng& rng);

}  // namespace hpo::sampler
