// The connected cards that are smaller than one that asks. They decide in which order it takes the
// trials that wait: a trial goes by the smallest card that can run it, the largest of these first,
// equals by number. So what only the asking card can run comes before what others can run too.
#pragma once

#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/bytes.h"
#include "common/protocol/worker_facts.h"
#include "common/study/study.h"
#include "common/study/trial.h"
#include "server/placement/placement.h"

namespace hpo::server {

// One owner thread.
class SmallerCards {
 public:
  // Of `workers`, which serve the study, those that may use less than `usable` bytes; of equal ones
  // one. `knowledge` is asked for each of these. `study` must outlive this object.
  SmallerCards(const StudySpec& study, Bytes usable, const std::vector<WorkerFacts>& workers,
               absl::FunctionRef<MemoryKnowledge(const WorkerFacts&)> knowledge);

  // What the smallest of them that can run `trial` may use, as far as is known; nullopt: none can.
  std::optional<Bytes> LeastUsableFor(const Trial& trial) const;

 private:
  struct Card {
    WorkerFacts facts;
    Bytes usable;
    memory::BatchFeasibility feasibility;  // empty: everything fits
  };

  bool CanRun(const Card& card, const Trial& trial) const;

  const StudySpec& study_;
  std::vector<Card> cards_;  // smallest first
};

}  // namespace hpo::server
