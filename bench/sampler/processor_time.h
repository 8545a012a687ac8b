// Processor time, which other programs of the machine do not lengthen.
#pragma once

namespace hpo {

// Of this process so far, in seconds.
double ProcessorSeconds();

}  // namespace hpo
