// Programs whose configurations are dry-run: needs with the steps of an allocator, kernels that
// change with size, several phases, the largest of them counts, and choices; and studies over them.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "memory/learned/dry_run_need.h"
#include "tests/memory/simulated_law.h"

namespace hpo::memory {

using Weights = std::span<const double, 3>;

struct DryRunProgram {
  SearchSpace space;
  // Bytes of torch's allocator, up to a factor.
  std::function<double(const ParamMap&, Weights)> law;
};

// As torch's allocator rounds a block: above 1 MiB in segments of 20 MiB, from 10 MiB on by 2 MiB.
inline double Rounded(double bytes) {
  const double mib = 1024.0 * 1024.0;
  if (bytes <= mib) return 512.0 * std::ceil(bytes / 512.0);
  const double segment = bytes < 10.0 * mib ? 20.0 * mib : 2.0 * mib;
  return segment * std::ceil(bytes / segment);
}

inline double SizeOf(const ParamMap& params, const char* name) { return *FindDouble(params, name); }

inline bool HasName(const ParamMap& params, const char* name, const char* value) {
  return *FindString(params, name) == value;
}

inline Parameter NumberChoices(const char* name, std::initializer_list<int64_t> values) {
  return Choices(name, std::vector<ParamValue>(values.begin(), values.end()));
}

inline Parameter NameChoices(const char* name, std::initializer_list<const char*> values) {
  std::vector<ParamValue> names;
  for (const char* value : values) names.emplace_back(std::string(value));
  return Choices(name, std::move(names));
}

inline SearchSpace SpaceOf(std::vector<Parameter> sizes) {
  sizes.push_back({.name = "lr",
                   .domain = FloatDomain{.low = 1e-5, .high = 1e-3},
                   .when = {},
                   .default_value = {}});
  SearchSpace space;
  space.parameters = std::move(sizes);
  return space;
}

inline double TransformerLaw(const ParamMap& p, Weights w) {
  const double b = SizeOf(p, "batch");
  const double s = SizeOf(p, "length");
  const double h = SizeOf(p, "hidden");
  const double n = SizeOf(p, "layers");
  const double state = HasName(p, "optimizer", "adam") ? 16.0 : 8.0;
  const double scores = s > 256 ? 0.0 : Rounded(b * 24.0 * s * s * w[1]);
  return Rounded((n * 12.0 * h * h + 3e4 * h) * state) + n * Rounded(b * s * h * 34.0 * w[0]) +
         n * scores + Rounded(b * s * 18e4 * w[2]);
}

inline double ConvolutionLaw(const ParamMap& p, Weights w) {
  const double pixels = SizeOf(p, "batch") * SizeOf(p, "image") * SizeOf(p, "image");
  const double depth = HasName(p, "model", "small")    ? 1.0
                       : HasName(p, "model", "middle") ? 1.6
                                                       : 3.4;
  const double bytes = HasName(p, "amp", "on") ? 0.6 : 1.0;
  double activations = 0.0;
  for (int layer = 0; layer < 20; ++layer) {
    activations += Rounded(pixels * depth * bytes * w[0] * 20.0 * (1 + layer % 4));
  }
  return activations + 2e8 * depth + Rounded(w[1] * (pixels > 1e6 ? 4e8 : 6e7));
}

inline double TwoPhasesLaw(const ParamMap& p, Weights w) {
  const double s = SizeOf(p, "length");
  const double h = SizeOf(p, "hidden");
  const double training = 12.0 * Rounded(SizeOf(p, "batch") * s * h * 30.0 * w[0]);
  const double evaluation = Rounded(SizeOf(p, "eval") * s * (h * 8.0 * w[1] + 2e4 * w[2]));
  return Rounded(144.0 * h * h * 16.0) + std::max(training, evaluation);
}

inline double PowerLaw(const ParamMap& p, Weights w) {
  return 5e8 + w[0] * 6e4 * std::pow(SizeOf(p, "batch"), 0.9) * std::pow(SizeOf(p, "length"), 1.3) *
                   std::sqrt(SizeOf(p, "hidden"));
}

inline double RecurrentLaw(const ParamMap& p, Weights w) {
  const double b = SizeOf(p, "batch");
  const double t = SizeOf(p, "steps");
  const double h = SizeOf(p, "hidden");
  const double n = SizeOf(p, "layers") * (HasName(p, "directions", "both") ? 2.0 : 1.0);
  return n * (Rounded(128.0 * h * h * w[0]) + Rounded(b * t * h * 24.0 * w[1])) +
         Rounded(b * t * 8e4 * w[2]) + (b > 128 ? 2e8 : 0.0);
}

inline double PatchLaw(const ParamMap& p, Weights w) {
  const double b = SizeOf(p, "batch");
  const double h = SizeOf(p, "width");
  const double n = SizeOf(p, "depth");
  const double tokens = std::pow(std::floor(224.0 / SizeOf(p, "patch")), 2.0) + 1.0;
  const double state = HasName(p, "optimizer", "sgd")    ? 8.0
                       : HasName(p, "optimizer", "lamb") ? 20.0
                                                         : 16.0;
  return Rounded(n * 12.0 * h * h * state) +
         n * (Rounded(b * tokens * h * 34.0 * w[0]) +
              Rounded(b * h / 64.0 * tokens * tokens * 5.0 * w[1]));
}

inline double DetectorLaw(const ParamMap& p, Weights w) {
  const double b = SizeOf(p, "batch");
  const double side = 128.0 * std::ceil(SizeOf(p, "side") / 128.0);
  const double k = HasName(p, "backbone", "s") ? 1.0 : HasName(p, "backbone", "m") ? 2.0 : 3.7;
  const double proposals = std::min(SizeOf(p, "proposals"), side * side / 300.0);
  return k * 4e8 + Rounded(b * side * side * k * w[0] * 300.0) +
         Rounded(b * proposals * 1e6 * w[1]) + (side > 800 ? 3e8 : 0.0);
}

inline double LowRankLaw(const ParamMap& p, Weights w) {
  const double r = SizeOf(p, "rank");
  const double b = SizeOf(p, "batch");
  const double s = SizeOf(p, "length");
  const double k = HasName(p, "targets", "all") ? 7.0 : 2.0;
  const double block =
      Rounded(b * s * 20480.0 * w[0]) + k * Rounded(b * s * (r + 2048.0) * 2.0 * w[1]);
  return 2.4e9 + 24.0 * k * Rounded(r * 65536.0) + 24.0 * block +
         std::max(Rounded(b * s * 192e3 * w[2]), Rounded(b * s * s * 32.0 * w[1]));
}

// The margins of DryRunNeed were chosen on these.
inline std::vector<DryRunProgram> TuningPrograms() {
  return {
      {SpaceOf({NumberChoices("batch", {2, 4, 8, 16, 32, 64}), WholeNumber("length", 64, 512, 64),
                NumberChoices("hidden", {256, 384, 512, 768, 1024}), WholeNumber("layers", 2, 12),
                NameChoices("optimizer", {"adam", "sgd"})}),
       TransformerLaw},
      {SpaceOf({WholeNumber("batch", 8, 128, 8), WholeNumber("image", 96, 256, 32),
                NameChoices("model", {"small", "middle", "large"}),
                NameChoices("amp", {"on", "off"})}),
       ConvolutionLaw},
      {SpaceOf({WholeNumber("batch", 1, 32), WholeNumber("length", 128, 1024, 128),
                WholeNumber("eval", 8, 64, 8), NumberChoices("hidden", {256, 512, 1024})}),
       TwoPhasesLaw},
      {SizesSpace(), PowerLaw}};
}

// And checked on these.
inline std::vector<DryRunProgram> CheckedPrograms() {
  return {{SpaceOf({WholeNumber("batch", 16, 256, 16), WholeNumber("steps", 32, 256, 32),
                    WholeNumber("hidden", 128, 1024, 128), WholeNumber("layers", 1, 4),
                    NameChoices("directions", {"one", "both"})}),
           RecurrentLaw},
          {SpaceOf({NumberChoices("batch", {4, 8, 16, 32, 64, 128}),
                    NumberChoices("patch", {8, 16, 32}), NumberChoices("width", {192, 384, 768}),
                    WholeNumber("depth", 4, 16, 2),
                    NameChoices("optimizer", {"adamw", "lamb", "sgd"})}),
           PatchLaw},
          {SpaceOf({WholeNumber("batch", 1, 16), WholeNumber("side", 320, 1280, 32),
                    NumberChoices("proposals", {100, 300, 1000, 2000}),
                    NameChoices("backbone", {"s", "m", "l"})}),
           DetectorLaw},
          {SpaceOf({WholeNumber("rank", 4, 128, 4), NumberChoices("batch", {1, 2, 4, 8, 16}),
                    WholeNumber("length", 256, 2048, 256), NameChoices("targets", {"qv", "all"})}),
           LowRankLaw}};
}

struct DryRunFigures {
  int trials = 0;
  int ooms = 0;
  int dry_runs = 0;
  int refused_feasible = 0;  // configurations that would have run
  DryRunFigures& operator+=(const DryRunFigures& other) {
    trials += other.trials;
    ooms += other.ooms;
    dry_runs += other.dry_runs;
    refused_feasible += other.refused_feasible;
    return *this;
  }
};

// 60 trials on a GPU of 12 GiB. About half of the configurations need more than that. Its context
// differs by up to 300 MB from what dry runs say, which state a margin of 330 MB. Trials use up to
// 2 % more than they need.
class DryRunStudy {
 public:
  DryRunStudy(const DryRunProgram& program, uint64_t seed) : program_(program), rng_(seed, 5) {
    for (double& weight : weights_) weight = 0.5 + rng_.Uniform();
    offset_ = (rng_.Uniform() * 2.0 - 1.0) * 300e6;
    std::vector<double> needs;
    for (int i = 0; i < 1500; ++i) {
      needs.push_back(program_.law(DrawSizes(program_.space, rng_), weights_));
    }
    std::sort(needs.begin(), needs.end());
    const double share = 0.4 + 0.2 * rng_.Uniform();
    scale_ = (kTotal - kContext) / needs[static_cast<size_t>(1500.0 * share)];
  }

  DryRunFigures Run() {
    for (int tries = 0; figures_.trials < 60 && tries < 600; ++tries) Propose();
    return figures_;
  }

 private:
  static constexpr double kMiB = 1024.0 * 1024.0;
  static constexpr double kTotal = 12.0 * 1024.0 * kMiB;
  static constexpr double kSpare = 256.0 * kMiB;
  static constexpr double kContext = 450e6;
  static Bytes BytesOf(double bytes) { return Bytes{static_cast<int64_t>(bytes)}; }
  static Bytes Usable() { return BytesOf(kTotal - kSpare); }

  double DryRun(const ParamMap& params) const {
    return program_.law(params, weights_) * scale_ + kContext;
  }
  double NeedOf(const ParamMap& params) const { return DryRun(params) + offset_; }

  DryRunNeed Learn() const {
    return DryRunNeed(
        program_.space, {},
        {.seen = seen_, .findings = findings_, .usable = Usable(), .spare = BytesOf(kSpare)});
  }

  // Every fourth proposal is the largest of eight, as of a sampler whose objective grows with size.
  // What is not sure is left out, as the server does (preflight_policy.h), while enough else is
  // there.
  ParamMap Draw(const DryRunNeed& need) {
    const bool saves = figures_.dry_runs >= 8.0 + 0.25 * figures_.trials;
    const size_t enough = figures_.trials >= 10 && rng_.Below(4) == 0 ? 8 : 1;
    std::vector<ParamMap> allowed;
    for (int draws = 0; allowed.size() < enough && draws < 2000; ++draws) {
      ParamMap params = DrawSizes(program_.space, rng_);
      const LearnedFit fit = *need.Decide(params, Usable());
      if (fit.fits && (fit.sure || !saves || draws >= 200)) allowed.push_back(std::move(params));
    }
    if (allowed.empty()) return DrawSizes(program_.space, rng_);
    return *std::max_element(
        allowed.begin(), allowed.end(),
        [this](const ParamMap& a, const ParamMap& b) { return NeedOf(a) < NeedOf(b); });
  }

  void Propose() {
    const DryRunNeed need = Learn();
    const ParamMap params = Draw(need);
    const LearnedFit fit = *need.Decide(params, Usable());
    if (!fit.sure) {
      ++figures_.dry_runs;
      findings_.push_back(
          {.params = params, .required = BytesOf(DryRun(params)), .margin = BytesOf(330e6)});
      if (!Learn().Decide(params, Usable())->fits) {
        figures_.refused_feasible += NeedOf(params) <= kTotal ? 1 : 0;
        return;
      }
    }
    ++figures_.trials;
    if (NeedOf(params) > kTotal) {
      ++figures_.ooms;
      seen_.push_back({.params = params, .bytes = Usable(), .censored = true});
      return;
    }
    const double kept = 0.02 * rng_.Uniform() * (NeedOf(params) - kContext);
    seen_.push_back({.params = params, .bytes = BytesOf(std::min(kTotal, NeedOf(params) + kept))});
  }

  const DryRunProgram& program_;
  Rng rng_;
  double weights_[3] = {};
  double offset_ = 0.0;
  double scale_ = 1.0;
  std::vector<NeedObservation> seen_;
  std::vector<DryRunFinding> findings_;
  DryRunFigures figures_;
};

}  // namespace hpo::memory
