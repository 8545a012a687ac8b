// Standard input, output and error of a program.
#pragma once

#include <ostream>

namespace hpo {

// To be called before anything is opened. Without it, the first file or connection of a program
// that was started with a closed standard output would be that output, and text would go there.
// Writing to an output that was closed fails, as it would have.
void OpenStandardStreams();

// The exit status of a program that ends with `status` and has written its result to `out`: where
// not all of it could be written, `err` says so, and a status of 0 becomes 1.
int FinishOutput(std::ostream& out, std::ostream& err, int status);

}  // namespace hpo
