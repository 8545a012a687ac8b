// Trials' parameters as YAML, to paste into a study file or to read by a program. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/study/study.h"
#include "common/study/trial.h"

namespace hpo::cli {

// One document a trial: a mapping of its parameters, below a comment with its values. Every value
// reads back as what it is, by YAML 1.1 and 1.2 alike.
std::string ParamsYaml(const std::vector<Trial>& trials, const StudySpec& study);

}  // namespace hpo::cli
