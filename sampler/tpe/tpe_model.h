// What TPE makes of a study's trials, for one search space and one capacity: which trials teach
// what, and the densities of each kind, kept up to date trial by trial. Equal to one that is built
// again from the same trials, bit for bit.
// One owner while it changes; between Update() and the next safe to share between threads.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sampler/api/history.h"
#include "sampler/priors/trial_split.h"
#include "sampler/tpe/density_ratio.h"
#include "sampler/tpe/model_space.h"
#include "sampler/tpe/tpe_scores.h"
#include "sampler/tpe/trial_loss.h"

namespace hpo::sampler {

// How TPE takes the parameters of a trial together.
struct TpeForm {
  std::string name = "tpe";                   // of the sampler
  Dependence dependence = Dependence::kBoth;  // of the density of quality
  // How often a parameter of a candidate comes from the good trial that it has in common with
  // others, where few trials run at once.
  double together = 0.5;
  Grouping grouping = Grouping::kAll;  // of the parameters in the density of quality
};

class TpeModel {
 public:
  // Knows no trial.
  TpeModel(const SearchSpace& space, Bytes capacity, MemoryPolicy policy, const TpeForm& form);
  // The model spaces refer to the search space in it.
  TpeModel(const TpeModel&) = delete;
  TpeModel& operator=(const TpeModel&) = delete;

  const SearchSpace& space() const { return space_; }
  Bytes capacity() const { return capacity_; }

  // Takes in trials of `history` that are new or have changed in anything but their parameters.
  void Update(const History& history, std::span<const TrialNumber> changed);

  // Whether trials at this capacity or above ran out of memory, so that memory is modelled.
  bool learned_memory() const { return memory_.num_lost > 0; }

  // Trials that run and that the capacity is not known to be too small for.
  int64_t num_running() const { return num_running_; }

  // Configurations from the densities of good trials, and of trials that ran within the capacity;
  // nullopt as ModelSpace::Draw.
  std::optional<ParamMap> DrawGood(Rng& rng) const;
  std::optional<ParamMap> DrawRunnable(Rng& rng) const;

  // The acquisition of each configuration.
  TpeScores Score(std::span<const ParamMap* const> candidates) const;

 private:
  struct Known {
    TrialLesson lesson = TrialLesson::kNothing;
    QualityKey key;           // of one that teaches quality
    bool on_smaller = false;  // it does, and ran on a card of a smaller class
  };

  void LearnQuality(const HistoryTrial& trial, const Known& before, const Known& now);
  void StartModelling(TrialLoss& loss, const History& history);
  void MoveGood(const History& history);
  double Together() const;
  std::vector<TrialNumber> FindGood(const History& history) const;
  std::vector<double> WeighGood() const;

  SearchSpace space_;
  Bytes capacity_;
  MemoryPolicy policy_;
  TpeForm form_;
  ModelSpace quality_space_;
  ModelSpace memory_space_;
  DensityRatio quality_;
  TrialLoss memory_;
  TrialLoss failure_;
  TrialLoss violation_;
  absl::flat_hash_map<int64_t, Known> known_;  // by trial
  std::set<QualityKey> order_;                 // of the finished trials
  std::vector<TrialNumber> good_;              // by number
  int64_t num_running_ = 0;
  int64_t num_on_smaller_ = 0;
  bool several_objectives_ = false;
};

}  // namespace hpo::sampler
