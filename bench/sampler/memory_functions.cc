#include "bench/sampler/memory_functions.h"

#include <cmath>
#include <limits>
#include <utility>

namespace hpo {
namespace {

constexpr double kBytesPerGiB = 1 << 30;
constexpr double kCliffGiB = 1.6;

Bytes CeilBytes(double bytes) { return Bytes{static_cast<int64_t>(std::ceil(bytes))}; }

double CliffBytes(double width, double depth, double batch) {
  return 0.6 * kBytesPerGiB + 16.0 * depth * width * width + 9000.0 * batch * width * depth;
}

double CliffLoss(double width, double depth, double batch, double rate) {
  const double log_batch = std::log2(batch) - 6.0;
  const double log_rate = std::log10(rate) + 3.0;
  return 2.0 - 0.12 * std::log2(width) - 0.25 * std::log2(depth) + 0.04 * log_batch * log_batch +
         0.25 * log_rate * log_rate;
}

double CliffOptimum() {
  double best = std::numeric_limits<double>::infinity();
  for (int depth = 2; depth <= 12; ++depth) {
    for (int width = 16; width <= 1024; ++width) {
      for (int batch = 8; batch <= 1024; ++batch) {
        if (CliffBytes(width, depth, batch) > kCliffGiB * kBytesPerGiB) break;
        best = std::min(best, CliffLoss(width, depth, batch, 1e-3));
      }
    }
  }
  return best;
}

// ---- A transformer -----------------------------------------------------------------------------

constexpr double kTokensPerText = 256.0;
constexpr double kSteps = 512.0;
constexpr double kOperationsPerSecond = 20e12;
constexpr double kStartSeconds = 60.0;

double Parameters(double width, double depth) { return 12.0 * depth * width * width; }

Bytes FleetBytes(const ParamMap& params) {
  const double width = At(params, "width");
  const double depth = At(params, "depth");
  const double tokens = kTokensPerText * At(params, "batch");
  return CeilBytes(kBytesPerGiB + 16.0 * Parameters(width, depth) + 34.0 * tokens * width * depth);
}

double FleetSeconds(const ParamMap& params) {
  const double tokens = kSteps * kTokensPerText * At(params, "batch");
  const double operations = 6.0 * tokens * Parameters(At(params, "width"), At(params, "depth"));
  return kStartSeconds + operations / kOperationsPerSecond;
}

double FleetLoss(double width, double depth, double batch, double rate, double dropout) {
  const double log_rate = std::log10(rate) + 3.0 + 0.5 * std::log10(width / 256.0);
  const double log_batch = std::log2(batch) - 5.0;
  return 0.5 * std::pow(width / 256.0, -0.5) + 0.5 * std::pow(depth / 4.0, -0.5) +
         0.1 * log_rate * log_rate + 0.01 * log_batch * log_batch +
         2.0 * (dropout - 0.1) * (dropout - 0.1);
}

}  // namespace

SamplerProblem MemoryCliff(SamplerProblem::Memory memory) {
  SamplerProblem problem;
  problem.space.parameters = {sampler::MakeParameter("width", LogInt(16, 1024)),
                              sampler::MakeParameter("depth", IntDomain{2, 12}),
                              sampler::MakeParameter("batch", LogInt(8, 1024)),
                              sampler::MakeParameter("lr", LogFloat(1e-5, 1e-1))};
  problem.optimum = CliffOptimum();
  problem.capacity = Bytes{static_cast<int64_t>(kCliffGiB * kBytesPerGiB)};
  problem.run = [](const ParamMap& params, Rng&) {
    return sampler::SimulatedResult(
        CliffLoss(At(params, "width"), At(params, "depth"), At(params, "batch"), At(params, "lr")));
  };
  problem.need = [](const ParamMap& params) {
    return CeilBytes(CliffBytes(At(params, "width"), At(params, "depth"), At(params, "batch")));
  };
  problem.memory = memory;
  return problem;
}

SamplerProblem FleetProblem() {
  SamplerProblem problem;
  problem.space.parameters = {sampler::MakeParameter("width", LogInt(256, 2048)),
                              sampler::MakeParameter("depth", IntDomain{4, 32}),
                              sampler::MakeParameter("batch", LogInt(4, 128)),
                              sampler::MakeParameter("lr", LogFloat(1e-5, 1e-1)),
                              sampler::MakeParameter("dropout", FloatDomain{0.0, 0.5})};
  problem.optimum = FleetLoss(2048.0, 32.0, 32.0, 1e-3 / std::sqrt(8.0), 0.1);
  problem.capacity = GiB(80);
  problem.run = [](const ParamMap& params, Rng&) {
    return sampler::SimulatedResult(FleetLoss(At(params, "width"), At(params, "depth"),
                                              At(params, "batch"), At(params, "lr"),
                                              At(params, "dropout")));
  };
  problem.need = FleetBytes;
  problem.memory = SamplerProblem::Memory::kKnown;
  problem.seconds = FleetSeconds;
  return problem;
}

}  // namespace hpo
