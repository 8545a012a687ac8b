// Programs of which only their memory matters: laws that a learner has to find out, and studies
// over them without processes.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "memory/learned/learned_need.h"

namespace hpo::memory {

inline Parameter Choices(const std::string& name, std::vector<ParamValue> choices) {
  return {.name = name,
          .domain = CategoricalDomain{std::move(choices)},
          .when = {},
          .default_value = {}};
}

inline Parameter WholeNumber(const std::string& name, int64_t low, int64_t high, int64_t step = 1) {
  return {.name = name,
          .domain = IntDomain{.low = low, .high = high, .step = step},
          .when = {},
          .default_value = {}};
}

// A space of the usual sizes, and a rate.
inline SearchSpace SizesSpace() {
  SearchSpace space;
  std::vector<ParamValue> batches;
  for (int64_t batch = 2; batch <= 64; batch *= 2) batches.emplace_back(batch);
  std::vector<ParamValue> widths;
  for (const int64_t width : {128, 256, 384, 512, 768, 1024}) widths.emplace_back(width);
  space.parameters = {Choices("batch", batches), WholeNumber("length", 64, 512, 64),
                      Choices("hidden", widths), WholeNumber("layers", 1, 12),
                      Parameter{.name = "lr",
                                .domain = FloatDomain{.low = 1e-5, .high = 1e-3, .log = true},
                                .when = {},
                                .default_value = {}}};
  return space;
}

inline ParamMap Sizes(int64_t batch, int64_t length, int64_t hidden, int64_t layers) {
  return {{"batch", batch}, {"length", length}, {"hidden", hidden}, {"layers", layers}};
}

// Uniform over choices and grids.
inline ParamMap DrawSizes(const SearchSpace& space, Rng& rng) {
  ParamMap params;
  for (const Parameter& parameter : space.parameters) {
    if (const auto* choices = std::get_if<CategoricalDomain>(&parameter.domain)) {
      params[parameter.name] = choices->choices[rng.Below(choices->choices.size())];
    } else if (const auto* whole = std::get_if<IntDomain>(&parameter.domain)) {
      const int64_t values = (whole->high - whole->low) / whole->step + 1;
      const auto index = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(values)));
      params[parameter.name] = whole->low + index * whole->step;
    } else {
      const auto& real = std::get<FloatDomain>(parameter.domain);
      params[parameter.name] = real.low + (real.high - real.low) * rng.Uniform();
    }
  }
  return params;
}

// One program: bytes by configuration, with constants drawn by seed, and noise from run to run.
class SimulatedLaw {
 public:
  static constexpr int kNumKinds = 6;

  SimulatedLaw(int kind, uint64_t seed, double noise) : kind_(kind), noise_(noise) {
    Rng rng(seed, static_cast<uint64_t>(kind));
    base_ = 1e8 + 9e8 * rng.Uniform();
    for (double& weight : weights_) weight = 0.5 + rng.Uniform();
  }

  // Without noise.
  double Need(const ParamMap& params) const {
    const double b = *FindDouble(params, "batch");
    const double s = *FindDouble(params, "length");
    const double h = *FindDouble(params, "hidden");
    const double l = *FindDouble(params, "layers");
    const auto& [u, v, w] = weights_;
    switch (kind_) {
      case 0:
        return base_ + u * 200.0 * b * s * h + v * 60.0 * h * h * l;
      case 1:
        return base_ + u * 12.0 * b * s * h * l + v * 100.0 * h * h * l;
      case 2:
        return base_ + u * 10.0 * b * s * h * l + v * 30.0 * b * s * s * l + w * 100.0 * h * h * l;
      // The others are no sums of the learner's products.
      case 3:
        return base_ + u * 6e4 * std::pow(b, 0.9) * std::pow(s, 1.3) * std::sqrt(h);
      case 4:
        return base_ + u * 2e6 * b * l + v * 1e3 * std::pow(h, 1.9);
      default:
        return base_ + u * 3e3 * b * s * std::sqrt(h * l) + v * 1e6 * s * std::sqrt(l);
    }
  }

  double Run(const ParamMap& params, Rng& rng) const {
    // Four uniforms make a bell that is good enough.
    double bell = -2.0;
    for (int i = 0; i < 4; ++i) bell += rng.Uniform();
    return Need(params) * std::exp(noise_ * std::sqrt(3.0) * bell);
  }

 private:
  int kind_;
  double noise_;
  double base_ = 0.0;
  double weights_[3] = {};
};

struct StudyFigures {
  int num_late = 0;       // trials from 50 on
  int num_late_ooms = 0;  // of them
  int num_early_ooms = 0;
  double refused_feasible = 0.0;  // share of the configurations that fit, at the end
};

// 200 trials at a limit that 30 to 60 % of the space exceed. Every second trial takes the largest
// of the candidates that are allowed, as a sampler does whose objective grows with size.
inline StudyFigures SimulateStudy(const SimulatedLaw& law, uint64_t seed) {
  constexpr int kTrials = 200;
  constexpr int kLate = 50;
  constexpr int kCandidates = 24;
  const SearchSpace space = SizesSpace();
  Rng rng(seed, 99);
  std::vector<ParamMap> listed;
  std::vector<double> needs;
  for (int i = 0; i < 2000; ++i) {
    listed.push_back(DrawSizes(space, rng));
    needs.push_back(law.Need(listed.back()));
  }
  std::vector<double> sorted = needs;
  std::sort(sorted.begin(), sorted.end());
  const double share = 0.4 + 0.3 * rng.Uniform();
  const Bytes limit{static_cast<int64_t>(sorted[static_cast<size_t>(share * 2000.0)])};

  StudyFigures figures;
  std::vector<NeedObservation> seen;
  for (int trial = 0; trial < kTrials; ++trial) {
    const LearnedNeed need(space, {}, seen);
    std::vector<ParamMap> allowed;
    for (int round = 0; round < 20 && allowed.empty(); ++round) {
      for (int i = 0; i < kCandidates; ++i) {
        ParamMap params = DrawSizes(space, rng);
        if (need.Decide(params, limit).fits) allowed.push_back(std::move(params));
      }
    }
    if (allowed.empty()) allowed.push_back(Sizes(2, 64, 128, 1));
    const bool greedy = trial >= 10 && trial % 2 == 1;
    const ParamMap& chosen = greedy
                                 ? *std::max_element(allowed.begin(), allowed.end(),
                                                     [&law](const ParamMap& a, const ParamMap& b) {
                                                       return law.Need(a) < law.Need(b);
                                                     })
                                 : allowed.front();
    const double used = law.Run(chosen, rng);
    const bool oom = used > static_cast<double>(limit.count);
    seen.push_back({chosen, oom ? limit : Bytes{static_cast<int64_t>(used)}, oom});
    (trial < kLate ? figures.num_early_ooms : figures.num_late_ooms) += oom ? 1 : 0;
    figures.num_late += trial < kLate ? 0 : 1;
  }
  const LearnedNeed learnt(space, {}, seen);
  int feasible = 0;
  int refused = 0;
  for (size_t i = 0; i < listed.size(); ++i) {
    if (needs[i] > static_cast<double>(limit.count)) continue;
    ++feasible;
    refused += learnt.Decide(listed[i], limit).fits ? 0 : 1;
  }
  figures.refused_feasible = static_cast<double>(refused) / feasible;
  return figures;
}

}  // namespace hpo::memory
