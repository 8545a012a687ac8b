// Dicts of numbers as programs print them: JSON objects on one line or several, and Python's print
// and pprint of a dict, with the numbers of numpy, torch, JAX and TensorFlow. Pure.
//
// An entry counts whose key is a string and whose value is one number: 0.3, -inf, nan; a number as
// text ('0.3'); np.float64(0.3), tensor(0.3, device='cuda:0') and whatever else is a name with one
// number and named arguments; array(0.3); Decimal('0.3'); Fraction(3, 10). All others are passed
// over: True, None, null, texts, lists, arrays of several numbers, and dicts within the dict. Of
// entries of one key the last counts.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"
#include "common/study/trial.h"

namespace hpo {

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
PrintedDict ReadPrintedDict(absl::string_view text);

}  // namespace hpo
