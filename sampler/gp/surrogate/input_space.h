// The axes of a Gaussian process over a search space, and coded configurations as points on them.
//
// One axis per modelled parameter of more than one value: the position of a number, the index of a
// choice. For quality, train.batch_size and train.grad_accum are one axis, their product
// (effective_batch.h); what fits depends on the two apart (ModelView). A conditional number that is
// inactive lies at the middle of its axis, and an axis per distinct list of conditions says whether
// it is active: imputation by a constant with an indicator, which keeps the kernel positive
// semi-definite whatever the weights. An inactive choice is a category of its own.
// Source: Hutter & Osborne 2013 (arXiv:1310.5738, kernels for conditional spaces); imputation:
// Levesque et al. 2017. Immutable; safe to share between threads.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sampler/space/coded_space.h"
#include "sampler/space/effective_batch.h"
#include "sampler/space/model_view.h"

namespace hpo::sampler {

class InputSpace {
 public:
  // `space` must outlive this object.
  InputSpace(const CodedSpace& space, ModelView view);

  size_t num_axes() const { return axes_.size(); }

  // `codes` of a configuration as a point.
  std::vector<double> Point(const Codes& codes) const;

  // The axis on which a continuous parameter's code is the coordinate itself; nullopt for others.
  std::optional<size_t> ContinuousAxis(size_t parameter) const { return continuous_[parameter]; }

 private:
  enum class AxisKind { kPosition, kChoice, kEffectiveBatch, kActivity };
  struct Axis {
    AxisKind kind;
    size_t parameter;  // of an activity: one that has the conditions
  };

  double Coordinate(const Axis& axis, const Codes& codes) const;
  void AddActivityOf(size_t parameter);

  const CodedSpace& space_;
  std::vector<Axis> axes_;
  std::vector<std::optional<size_t>> continuous_;  // by parameter
  std::optional<EffectiveBatchPair> pair_;
  std::optional<NumericScale> pair_scale_;
  std::vector<int64_t> first_values_;  // of the pair, by code
  std::vector<int64_t> second_values_;
};

}  // namespace hpo::sampler
