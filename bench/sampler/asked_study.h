// A study whose trials another process runs. It asks, and tells what trials came to, in any order
// and with any number of them under way, one JSON object a line:
//
//   in   {"ask": true}
//   out  {"number": 0, "params": {...}, "processor_ms": 1.5}   what the sampler took since the last
//   in   {"number": 0, "loss": 0.25}  or  {"number": 0, "failed": true}                no answer
//
// Deterministic by the study's seed and the order of the lines. One owner thread.
#pragma once

#include <istream>
#include <map>
#include <memory>
#include <ostream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "sampler/api/sampler.h"

namespace hpo {

class AskedStudy {
 public:
  explicit AskedStudy(StudySpec study);

  // What the sampler proposes as the next trial, as it is answered.
  //   as Sampler::Suggest
  absl::StatusOr<nlohmann::json> Ask();

  // The end of a trial.
  //   InvalidArgument  a member is missing, of another type or not finite
  //   NotFound         no such trial is under way
  absl::Status Tell(const nlohmann::json& line);

 private:
  void Observe(const sampler::HistoryTrial& trial);

  const StudySpec study_;
  std::unique_ptr<sampler::Sampler> sampler_;
  std::map<int64_t, sampler::HistoryTrial> running_;
  int64_t next_number_ = 0;
  int64_t sequence_ = 0;
  double told_s_ = 0.0;  // processor time of what was told since the last ask
};

// Answers every line of `in` until it ends.
//   as above; names the line
absl::Status AnswerAsks(const StudySpec& study, std::istream& in, std::ostream& out);

}  // namespace hpo
