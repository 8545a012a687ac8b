// train.batch_size and train.grad_accum as one quantity: their product, the effective batch E.
// E is what learns, so quality is modelled over log E; see model_space.h.
// Pure; safe from any thread.
#pragma once

#include <optional>
#include <vector>

#include "common/base/random.h"
#include "common/space/search_space.h"
#include "common/study/trial.h"
#include "sampler/space/numeric_scale.h"

namespace hpo::sampler {

// Two parameters of a space, by index; `first` comes before `second`.
struct EffectiveBatchPair {
  size_t first = 0;
  size_t second = 0;
};

// The pair of a space that has both, modelled, under the same conditions, and with at most 64
// values each, all positive integers, that give at least two products; else nullopt.
std::optional<EffectiveBatchPair> FindEffectiveBatch(const SearchSpace& space);

// The logarithmic scale over all products of the pair, widened at each end by half the gap to the
// next product, so that the outermost are as likely as the others.
NumericScale EffectiveBatchScale(const SearchSpace& space, const EffectiveBatchPair& pair);

// Values of `domain` in its order, if they are at most 64 positive integers; else nullopt.
std::optional<std::vector<int64_t>> PositiveIntegers(const Domain& domain);

// A value for the pair's first parameter, one of `allowed`: such that some value of the second that
// is allowed with it and with `params` brings the product nearest to `target` in logarithm. Ties
// are drawn at random. nullopt where no value of the first leaves the second any.
std::optional<int64_t> ChooseFirstOfPair(const SearchSpace& space, const EffectiveBatchPair& pair,
                                         const ParamMap& params, const Domain& allowed,
                                         double target, Rng& rng);

// The value of `allowed` that brings its product with `first` nearest to `target` in logarithm; the
// smaller of two.
int64_t ChooseSecondOfPair(int64_t first, const Domain& allowed, double target);

}  // namespace hpo::sampler
