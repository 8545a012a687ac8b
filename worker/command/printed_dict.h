// Dicts of numbers as programs print them: JSON objects on one line or several, and Python's print
// and pprint of a dict, with the numbers of numpy, torch, JAX and TensorFlow. Pure.
//
// An entry counts whose key is a string, or a word before ": " as JavaScript prints it, and whose
// value is one number: 0.3, -inf, nan; a number as text ('0.3', '1,234.5'); np.float64(0.3),
// tensor(0.3, device='cuda:0') and whatever else is a name with one number and named arguments;
// array(0.3); Decimal('0.3'); Fraction(3, 10). All others are passed over: True, None, null, texts,
// lists, arrays of several numbers, and dicts within the dict. Of entries of one key the last
// counts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/study/trial.h"

namespace hpo::command {

struct PrintedDict {
  enum class End {
    kClosed,
    kOpen,  // the text ends before the dict does
    kNone,  // it is no dict
  };
  End end = End::kNone;
  size_t size = 0;  // bytes up to the closing brace and with it; of a closed one
  Metrics numbers;  // of a closed one
};

// The dict that begins with the first byte of `text`, a brace. O(length).
PrintedDict ReadPrintedDict(absl::string_view text, const std::string& objective = "");

// A dict that comes line by line, of any size: of what is no number only the beginning is kept.
// A text without quotes, as an object's repr, is passed over as far as its brackets allow. One
// owner thread.
class PrintedDictReader {
 public:
  using End = PrintedDict::End;
  // Of a value; what is longer is no number.
  static constexpr size_t kMostOfValue = 4096;

  // More names than a result may have, and longer ones, are left out; never the objective's.
  explicit PrintedDictReader(std::string objective);

  // Reads the next line, without its newline; the first one begins with the brace. kNone: the line
  // does not go on with the dict, and nothing has changed; of the first line, the entries before
  // that place count.
  End Take(absl::string_view line);

  // As Take() of the first line, where the brace and the entries after it are not there.
  End TakeEntries(absl::string_view line);

  // Bytes of the last line that are read: up to the closing brace and with it; of a first line that
  // is no dict, up to the entry that is not understood.
  size_t size() const { return size_; }

  const Metrics& numbers() const { return numbers_; }
  size_t num_left_out() const { return num_left_out_; }

  // Whether a string with a colon behind it has come, or a whole entry of such a name.
  bool has_name() const { return state_.has_name; }
  bool has_entry() const { return state_.has_entry; }
  // Whether something was passed over whose end was a guess.
  bool is_odd() const { return state_.is_odd; }

  // The objective's value as it is printed, where that is no number; nullopt: there is none yet.
  const std::optional<std::string>& no_number() const { return no_number_; }

 private:
  friend class PrintedDictLine;

  struct Entry {
    std::string name;
    std::optional<double> number;
    std::string value;
  };

  // Between two lines.
  struct State {
    bool in_value = false;
    std::string closers;  // of the brackets that are open in the value
    std::string key;
    bool is_spaced = false;       // a space follows the key's colon
    std::string value;            // the first bytes
    std::string end;              // the last ones, where it is longer
    char last = 0;                // of the value, without space
    std::optional<Entry> before;  // the last entry
    bool has_name = false;
    bool has_entry = false;
    bool is_odd = false;
  };

  End TakeFrom(size_t begin, absl::string_view line);
  void Keep(Entry entry);

  std::string objective_;
  State state_;
  bool has_begun_ = false;
  size_t size_ = 0;
  Metrics numbers_;
  size_t num_left_out_ = 0;
  std::optional<std::string> no_number_;
};

}  // namespace hpo::command
