// Runs `hpo` in this process.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/program/program.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {

struct ProgramResult {
  int status = 0;
  std::string out;
  std::string err;
};

// Standard output is `written`, which a caller may read or follow while the program runs.
inline ProgramResult RunProgram(std::vector<std::string> words, std::stringbuf& written) {
  words.insert(words.begin(), "hpo");
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostream out(&written);
  std::ostringstream err;
  ProgramResult result;
  result.status = RunHpo(static_cast<int>(argv.size()), argv.data(), Terminal{}, out, err);
  result.out = written.str();
  result.err = err.str();
  return result;
}

inline ProgramResult RunProgram(std::vector<std::string> words) {
  std::stringbuf written;
  return RunProgram(std::move(words), written);
}

// What a run with `--output json` printed; discarded where that was no JSON.
inline nlohmann::json ParsedOutput(const ProgramResult& result, int status = 0) {
  EXPECT_EQ(result.status, status) << result.err;
  return nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
}

// Nothing listens where it looks for a server.
inline ProgramResult RunOffline(std::vector<std::string> words) {
  words.insert(words.end(), {"--server", "127.0.0.1:1"});
  return RunProgram(std::move(words));
}

inline nlohmann::json RunOfflineJson(std::vector<std::string> words, int status = 0) {
  words.insert(words.end(), {"--output", "json"});
  return ParsedOutput(RunOffline(std::move(words)), status);
}

// One line on standard error that holds `message`, and nothing on standard output.
inline void ExpectRefused(const std::vector<std::string>& words, int status,
                          const std::string& message) {
  const ProgramResult result = RunOffline(words);
  EXPECT_EQ(result.status, status) << message;
  EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  EXPECT_EQ(result.out, "");
}

}  // namespace hpo::cli
