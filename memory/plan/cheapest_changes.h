// The search for the cheapest changes that make something fit, whatever it is and however it is
// judged: config_advice.h for our trainer's configurations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/status.h"

namespace hpo::memory {

template <typename Config>
struct ChangeKind {
  std::string what;  // "fused optimizer", ...
  std::string cost;  // what it takes in exchange
  // The configuration with the change; nullopt where it has it already, or cannot have it.
  std::function<std::optional<Config>(const Config&)> apply;
};

// How a change leaves it.
struct ChangeNeed {
  Bytes needed;
  bool fits = false;
  int64_t micro_batch = 1;
  int64_t num_parts = 1;
};

template <typename Config>
struct AppliedChange {
  std::string what;
  std::string cost;
  Config config;
  Bytes needed;  // as it is judged
};

// `config` with every change that applies.
template <typename Config>
Config WithEveryChange(const std::vector<ChangeKind<Config>>& kinds, Config config) {
  for (const ChangeKind<Config>& kind : kinds) {
    if (std::optional<Config> changed = kind.apply(config)) config = *std::move(changed);
  }
  return config;
}

// What is known of one kind of configuration.
template <typename Config>
struct ChangeProblem {
  std::vector<ChangeKind<Config>> kinds;  // the cheapest first
  size_t num_free = 0;                    // so many of them come before the batch is split
  std::function<absl::StatusOr<ChangeNeed>(const Config&)> judge;
  // In the largest micro-batch that fits at the same effective batch, else in one of one row.
  std::function<absl::StatusOr<Config>(const Config&)> split;
  std::function<Config(const Config&, int64_t micro_batch)> in_parts;
};

// Takes changes from the cheapest on until it fits, then gives back, from the dearest on, each
// without which it fits too; one that costs nothing stays where the micro-batch would be smaller
// without it. Where nothing makes it fit, those stay that lower the need by more than 1 %.
template <typename Config>
class ChangeSearch {
 public:
  ChangeSearch(const ChangeProblem<Config>& problem, const Config& config)
      : problem_(problem), config_(config), taken_(problem.kinds.size(), false) {}

  // Each on top of those before it, a smaller micro-batch first. Empty: it fits as it is, or
  // nothing helps.
  //   what the problem's functions return
  absl::StatusOr<std::vector<AppliedChange<Config>>> Run() {
    HPO_ASSIGN_OR_RETURN(const ChangeNeed literal, problem_.judge(config_));
    if (literal.fits) return std::vector<AppliedChange<Config>>();
    HPO_RETURN_IF_ERROR(Take());
    HPO_RETURN_IF_ERROR(GiveBack());
    return Apply(literal);
  }

 private:
  Config With(const std::vector<bool>& taken) const {
    Config config = config_;
    for (size_t i = 0; i < taken.size(); ++i) {
      if (!taken[i]) continue;
      if (std::optional<Config> changed = problem_.kinds[i].apply(config)) config = *changed;
    }
    return config;
  }

  // In one part where that fits, or may not be split.
  absl::StatusOr<ChangeNeed> Judge(const std::vector<bool>& taken) const {
    const Config config = With(taken);
    HPO_ASSIGN_OR_RETURN(const ChangeNeed literal, problem_.judge(config));
    if (literal.fits || !splits_) return literal;
    HPO_ASSIGN_OR_RETURN(const Config parts, problem_.split(config));
    HPO_ASSIGN_OR_RETURN(const ChangeNeed split, problem_.judge(parts));
    return split.fits || split.needed < literal.needed ? split : literal;
  }

  // Also in the micro-batch that fits with the change: fitting is not monotone, so that the split
  // may have stopped short of it.
  absl::StatusOr<ChangeNeed> JudgeWithout(const std::vector<bool>& without) const {
    HPO_ASSIGN_OR_RETURN(const ChangeNeed need, Judge(without));
    const bool as_large = need.fits && need.micro_batch >= best_.micro_batch;
    if (as_large || !best_.fits || best_.num_parts == 1) return need;
    HPO_ASSIGN_OR_RETURN(const ChangeNeed parts,
                         problem_.judge(problem_.in_parts(With(without), best_.micro_batch)));
    return parts.fits ? parts : need;
  }

  absl::Status Take() {
    for (size_t i = 0; i < problem_.num_free; ++i) taken_[i] = true;
    HPO_ASSIGN_OR_RETURN(best_, Judge(taken_));
    if (best_.fits) return absl::OkStatus();
    splits_ = true;
    HPO_ASSIGN_OR_RETURN(best_, Judge(taken_));
    for (size_t i = problem_.num_free; i < taken_.size() && !best_.fits; ++i) {
      taken_[i] = true;
      HPO_ASSIGN_OR_RETURN(best_, Judge(taken_));
    }
    return absl::OkStatus();
  }

  absl::Status GiveBack() {
    for (size_t i = taken_.size(); i-- > 0;) {
      if (!taken_[i]) continue;
      std::vector<bool> without = taken_;
      without[i] = false;
      HPO_ASSIGN_OR_RETURN(const ChangeNeed need, JudgeWithout(without));
      const bool is_free = i < problem_.num_free;
      const bool as_good = best_.fits
                               ? need.fits && (!is_free || need.micro_batch >= best_.micro_batch)
                               : need.needed.count * 100 <= best_.needed.count * 101;
      if (!as_good) continue;
      taken_ = std::move(without);
      best_ = need;
    }
    return absl::OkStatus();
  }

  // Of those that are left the first that lowers the need where it stands, else the first.
  absl::StatusOr<std::vector<AppliedChange<Config>>> Apply(ChangeNeed now) const {
    std::vector<AppliedChange<Config>> changes;
    Config config = config_;
    if (best_.micro_batch < now.micro_batch) {
      config = problem_.in_parts(config, best_.micro_batch);
      HPO_ASSIGN_OR_RETURN(now, problem_.judge(config));
      changes.push_back(
          {.what = absl::StrCat("micro-batch ", best_.micro_batch, " in ", best_.num_parts,
                                best_.num_parts == 1 ? " part" : " parts"),
           .cost = "the same gradients from more, smaller passes",
           .config = config,
           .needed = now.needed});
    }
    std::vector<const ChangeKind<Config>*> left;
    for (size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i]) left.push_back(&problem_.kinds[i]);
    }
    while (!left.empty()) {
      HPO_ASSIGN_OR_RETURN(const size_t next, FirstThatHelps(left, config, now));
      const ChangeKind<Config>& kind = *left[next];
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(next));
      std::optional<Config> changed = kind.apply(config);
      if (!changed.has_value()) continue;
      config = *std::move(changed);
      HPO_ASSIGN_OR_RETURN(now, problem_.judge(config));
      changes.push_back(
          {.what = kind.what, .cost = kind.cost, .config = config, .needed = now.needed});
    }
    return changes;
  }

  absl::StatusOr<size_t> FirstThatHelps(const std::vector<const ChangeKind<Config>*>& left,
                                        const Config& config, const ChangeNeed& now) const {
    for (size_t i = 0; i < left.size(); ++i) {
      const std::optional<Config> changed = left[i]->apply(config);
      if (!changed.has_value()) continue;
      HPO_ASSIGN_OR_RETURN(const ChangeNeed need, problem_.judge(*changed));
      if (need.needed < now.needed) return i;
    }
    return size_t{0};
  }

  const ChangeProblem<Config>& problem_;
  const Config& config_;
  std::vector<bool> taken_;
  bool splits_ = false;
  ChangeNeed best_;
};

}  // namespace hpo::memory
