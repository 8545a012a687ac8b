// What all commands share. A command returns the cause of its exit status: OK, or the error that is
// printed as one line.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cli/client/client.h"
#include "cli/client/terminal.h"

namespace hpo::cli {

// `client` and `out` outlive it.
struct Session {
  Client& client;
  std::ostream& out;
  Terminal terminal;
  bool json = false;
  bool yaml = false;     // of hpo best alone
  std::string study;     // empty: the only one
  std::string database;  // the file that is read without a server; empty: a server is asked
  std::string join;      // --join; empty: none on the command line
  std::vector<std::string> forwarded;  // words after a command that another program reads
};

}  // namespace hpo::cli
