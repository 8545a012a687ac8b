// Finds the dicts in the lines that a program prints: several in a line, or one over several lines,
// with whatever a logger puts before them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/study/trial.h"
#include "worker/command/printed_dict.h"

namespace hpo::command {

// The objective is named and has no number that can be read.
struct UnreadObjective {
  std::string line;  // or what is around the name, where it is long
  // As it is printed; nullopt: the dict is not understood.
  std::optional<std::string> value;
};

// A dict, or what seems to be one.
struct FoundDict {
  Metrics numbers;
  std::optional<UnreadObjective> unread;
  size_t num_left_out = 0;  // beyond the limits (printed_dict.h)
};

// Lines that belong together, and the dicts in them, in their order.
struct ReadLines {
  std::vector<std::string> lines;
  std::vector<FoundDict> dicts;
};

// A line whose dict is not closed is held, and so are the lines that continue it; other lines
// between them are read by themselves. Of a long dict the lines are given out before its end,
// without what they hold of it.
//
// What is no dict for this reader may be one for its author: an object's repr has any characters.
// Where the objective's number stands before that place, or between it and the end, it counts. Else
// the dict is an UnreadObjective, if it has the objective's name as a key. A brace before which no
// whole entry stands begins no dict, and what follows is read line by line, so that nothing is
// lost. One owner thread.
class DictLines {
 public:
  // Held, and between two lines of a dict.
  static constexpr size_t kMostLines = 1000;
  static constexpr size_t kMostBytes = 64 << 10;

  explicit DictLines(std::string objective);

  // What is decided by the next line, in the order in which it was printed.
  std::vector<ReadLines> Take(absl::string_view line);
  // What is still held.
  std::vector<ReadLines> Finish();

 private:
  // Whether `line` is read with what is held, whatever comes of it.
  bool Continue(absl::string_view line, std::vector<ReadLines>& decided);
  // Whether `line` ends a dict with a part that is not understood.
  bool EndAfterGap(absl::string_view line, std::vector<ReadLines>& decided);
  void Hold(absl::string_view line, std::vector<ReadLines>& decided);
  void Decide(FoundDict dict, std::vector<ReadLines>& decided);
  void GiveUp(std::vector<ReadLines>& decided);
  void Close();

  const std::string objective_;
  std::optional<PrintedDictReader> open_;
  std::string prefix_;  // what stood before the brace, and may stand before every line
  std::vector<std::string> held_;
  size_t held_bytes_ = 0;
  size_t num_between_ = 0;
  std::optional<UnreadObjective> named_;  // the first line that names the objective
};

}  // namespace hpo::command
