// A server as people look at it. Plain values, filled by server/api and shown by the CLI.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hpo {

struct ServerStatus {
  std::string version;
  std::string database;  // its path
  int64_t epoch = 0;     // how often a server has started on it
  std::string trouble;   // what keeps it from storing or reading at the moment; empty: nothing
  std::vector<std::string> damage;  // what SQLite found wrong with the file at the start
  std::string page;                 // address of its page; empty: it serves none
};

}  // namespace hpo
