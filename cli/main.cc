// hpo: see cli/program.cc for its commands.
#include <unistd.h>

#include <iostream>

#include "cli/program.h"

int main(int argc, char** argv) {
  return hpo::RunHpo(argc, argv, hpo::DetectTerminal(STDOUT_FILENO), std::cout, std::cerr);
}
