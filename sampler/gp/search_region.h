// Where a search for a configuration looks: everywhere in its space, or in a box around one.
// Copies are independent. Safe to share between threads.
#pragma once

#include <optional>
#include <vector>

#include "common/base/random.h"
#include "sampler/space/coded_space.h"

namespace hpo::sampler {

// A box around a configuration: numbers may move so far from it, choices are free.
struct SearchBox {
  Codes center;
  double side = 0.0;  // as a part of each axis
};

class SearchRegion {
 public:
  // `box`: null for everywhere. Both must outlive this object.
  SearchRegion(const CodedSpace& space, const SearchBox* box);

  const SearchBox* box() const { return box_; }

  // What a parameter may take, within the box where there is one.
  std::optional<AllowedCodes> Allowed(size_t parameter, const Codes& codes) const;

  // Numbers anywhere in the box, few choices drawn again; without a box, all is to be drawn
  // (CodedSpace::Complete).
  Codes Draw(Rng& rng) const;

  // `center` with some parameters moved: numbers by a distance drawn over orders of magnitude,
  // choices and what is not modelled drawn again.
  Codes Near(const Codes& center, Rng& rng) const;

 private:
  AllowedCodes ReachOf(size_t parameter) const;
  template <typename Keeps, typename Move>
  Codes Changed(const Codes& center, double new_choices, Rng& rng, Keeps keeps, Move move) const;

  const CodedSpace* space_;
  const SearchBox* box_;
  std::vector<AllowedCodes> reach_;  // of the box, by parameter
};

}  // namespace hpo::sampler
