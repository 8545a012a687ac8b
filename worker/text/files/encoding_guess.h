// Which encoding text that is not UTF-8 was perhaps written in. Says so only where the bytes speak
// for it: by their form, and by how often the commonest letters of a script's languages come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hpo::text {

inline uint8_t ByteAt(absl::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

struct EncodingGuess {
  absl::string_view name;   // for people: "GBK (Chinese)"
  absl::string_view iconv;  // the name that the program iconv takes
  bool multi_byte = false;  // known by the form of its characters, not only by their frequency
  bool operator==(const EncodingGuess&) const = default;
};

// The encodings that fit, the likeliest first; empty where nothing speaks for any of them.
// `text`: bytes, some of them above 0x7F.
std::vector<EncodingGuess> GuessEncodings(absl::string_view text);

// The encoding of seven-bit text that is valid as UTF-8 and is something else: ISO-2022, whose
// escape sequences no text has, or UTF-7, if every '+' of three or more begins a sequence of it.
// Empty: neither.
std::vector<EncodingGuess> GuessSevenBitEncoding(absl::string_view text);

// The command that converts the file `path`, for a shell in its folder:
// "iconv -f GBK -t UTF-8 train.csv > train.utf8.csv".
std::string ConvertCommand(absl::string_view iconv_name, absl::string_view path);

}  // namespace hpo::text
