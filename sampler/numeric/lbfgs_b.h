// L-BFGS-B: minimises a smooth function of a few to a few hundred variables inside a box.
// Source: Byrd, Lu, Nocedal & Zhu 1995 (generalised Cauchy point, direct primal subspace step on
// the compact limited-memory matrix), with the projected step of Morales & Nocedal 2011 and a
// backtracking line search; pairs without curvature are left out. Deterministic, and every sum has
// one order. Pure; safe from any thread.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace hpo::sampler {

// Value at `x`; writes the gradient. A value that is not finite makes the line search step back.
using SmoothFunction = std::function<double(std::span<const double> x, std::span<double> gradient)>;

struct LbfgsBOptions {
  int memory = 8;  // pairs kept
  int max_iterations = 100;
  int max_evaluations = 150;
  double gradient_tolerance = 1e-6;  // largest entry of the projected gradient
  double value_tolerance = 1e-10;    // decrease in a step, relative to max(|value|, 1)
};

struct LbfgsBResult {
  std::vector<double> x;  // the best point seen, inside the box
  double value = 0.0;
  int evaluations = 0;
  bool converged = false;  // by a tolerance, not by a limit
};

// `start` is moved into the box; lower <= upper, both finite.
LbfgsBResult MinimizeInBox(const SmoothFunction& function, std::span<const double> start,
                           std::span<const double> lower, std::span<const double> upper,
                           const LbfgsBOptions& options = {});

}  // namespace hpo::sampler
