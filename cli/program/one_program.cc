// hpo, hpo-server, hpo-worker, hpo-command-trainer and hpo-sampler in one file, for installations:
// gRPC and all else is there once. bin/hpo-server and its like start it with --program=NAME
// (scripts/packaged_alias); without, it is hpo.

#include <sys/prctl.h>

#include <iostream>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

// The main() of each program, renamed by the build (cmake/HpoInstall.cmake).
int HpoCommandTrainerMain(int argc, char** argv);
int HpoMain(int argc, char** argv);
int HpoSamplerMain(int argc, char** argv);
int HpoServerMain(int argc, char** argv);
int HpoWorkerMain(int argc, char** argv);

int main(int argc, char** argv) {
  constexpr absl::string_view kFlag = "--program=";
  if (argc < 2 || !absl::StartsWith(argv[1], kFlag)) return HpoMain(argc, argv);
  char* const name = argv[1] + kFlag.size();
  constexpr std::pair<absl::string_view, int (*)(int, char**)> kPrograms[] = {
      {"hpo-server", &HpoServerMain},
      {"hpo-worker", &HpoWorkerMain},
      {"hpo-command-trainer", &HpoCommandTrainerMain},
      {"hpo-sampler", &HpoSamplerMain}};
  for (const auto& [known, program] : kPrograms) {
    if (name != known) continue;
    prctl(PR_SET_NAME, name);
    argv[1] = name;  // the program's own name, where it expects it
    return program(argc - 1, argv + 1);
  }
  std::cerr
      << "hpo: --program: expected hpo-server, hpo-worker, hpo-command-trainer or hpo-sampler, "
         "got '"
      << name << "'\n";
  return 2;
}
