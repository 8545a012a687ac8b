#include "sampler/space/tried_cells.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sampler/space/grid_walk.h"

namespace hpo::sampler {
namespace {

constexpr size_t kMostWalked = 4096;

bool CanBeCounted(const CodedSpace& space) {
  for (size_t i = 0; i < space.size(); ++i) {
    const bool counted = space.kind(i) != CodedSpace::Kind::kContinuous || space.constant(i);
    if (space.space().parameters[i].modelled && !counted) return false;
  }
  return true;
}

}  // namespace

TriedCells::TriedCells(const CodedSpace& space, const std::vector<Codes>& tried) : space_(&space) {
  for (const Codes& codes : tried) cells_.insert(KeyOf(codes));
}

TriedCells::TriedCells(const CodedSpace& space, const History& history) : space_(&space) {
  for (const auto& [number, trial] : history.trials()) {
    if (auto codes = space.Encode(trial.params); codes.has_value()) {
      cells_.insert(KeyOf(*std::move(codes)));
    }
  }
}

Codes TriedCells::KeyOf(Codes codes) const {
  constexpr double kNone = -2.0;
  for (size_t i = 0; i < codes.size(); ++i) {
    const bool counts = space_->space().parameters[i].modelled && !std::isnan(codes[i]);
    if (!counts) codes[i] = kNone;
  }
  return codes;
}

std::optional<std::vector<Codes>> UntriedOf(const CodedSpace& space, const TriedCells& tried,
                                            size_t most, Rng& rng) {
  if (!CanBeCounted(space)) return std::nullopt;
  std::vector<Codes> left;
  GridWalk walk(space);
  for (size_t walked = 0; walk.Next(); ++walked) {
    if (walked == kMostWalked) return std::nullopt;
    if (!tried.Contains(walk.codes())) left.push_back(walk.codes());
  }
  for (size_t i = 0; i < std::min(most, left.size()); ++i) {
    std::swap(left[i], left[i + rng.Below(left.size() - i)]);
  }
  left.resize(std::min(most, left.size()));
  // What was drawn may bring parameters that exist with it alone.
  std::erase_if(left,
                [&](Codes& codes) { return !space.Complete(codes, rng) || tried.Contains(codes); });
  return left;
}

}  // namespace hpo::sampler
