// The texts of cli/fleet/templates, compiled in. cli/fleet/engines/CMakeLists.txt writes them.
#pragma once

namespace hpo::cli {

extern const char kKubernetesTemplate[];
extern const char kRayTemplate[];
extern const char kSkyTemplate[];
extern const char kSlurmTemplate[];

}  // namespace hpo::cli
