#include <cmath>
#include <utility>

#include "bench/sampler/problem.h"
#include "sampler/space/numeric_scale.h"

namespace hpo {
namespace {

// Mirrored at 0 and at 1.
double Reflected(double position) {
  const double in_period = std::fmod(std::abs(position), 2.0);
  return in_period > 1.0 ? 2.0 - in_period : in_period;
}

ParamMap Shifted(const SearchSpace& space, ParamMap params, double shift) {
  for (auto& [name, value] : params) {
    const auto* domain = std::get_if<FloatDomain>(&space.Find(name)->domain);
    if (domain == nullptr || domain->step.has_value()) continue;
    const sampler::NumericScale scale(*domain);
    const double position = scale.At(std::get<double>(value)).at;
    value = sampler::NearestValue(*domain, scale.ValueAt(Reflected(position + shift)));
  }
  return params;
}

}  // namespace

SamplerProblem Related(SamplerProblem problem, double shift, double scale) {
  problem.run = [run = std::move(problem.run), space = problem.space, shift, scale](
                    const ParamMap& params, Rng& noise) {
    sampler::SimulatedResult result = run(Shifted(space, params, shift), noise);
    if (result.loss.has_value()) *result.loss *= scale;
    for (auto& [step, loss] : result.reports) loss *= scale;
    return result;
  };
  problem.optimum *= scale;
  return problem;
}

}  // namespace hpo
