// A trial's parameters as programs take them: words of a command line, variables of the
// environment, a configuration file. Pure.
#pragma once

#include <map>
#include <string>

#include "common/space/params.h"

namespace hpo::command {

// The value itself, not what is shown to people: a real number with all its digits; true, false and
// null as words.
std::string ValueText(const ParamValue& value);

// One parameter as an option: "--NAME=VALUE"; of a boolean, which is a flag, "--NAME" or nothing;
// nothing for null, so that the program's own default holds.
std::string OptionText(const std::string& name, const ParamValue& value);

// One parameter as Hydra overrides it: "NAME=VALUE", a text in quotes where Hydra's grammar asks
// for them. Source: Hydra 1.3, OverrideLexer.g4.
std::string OverrideText(const std::string& name, const ParamValue& value);

// HPO_PARAMS, a JSON object of all parameters under their own names, and HPO_PARAM_NAME for each
// that is not null: its name in capitals, with "_" for whatever is no letter or digit. Names that
// differ in nothing else have no variable of their own. Empty where HPO_PARAMS would exceed
// kMostVariableBytes.
std::map<std::string, std::string> ParamVariables(const ParamMap& params);

// The kernel takes 128 KiB for one variable (MAX_ARG_STRLEN).
constexpr size_t kMostVariableBytes = size_t{100} << 10;

// One object that reads alike as JSON and as YAML (1.1 and 1.2), of several lines. A point in a
// name is a level: train.lr is lr within train. Where that name is a parameter as well, the point
// stays.
std::string ConfigText(const ParamMap& params);

}  // namespace hpo::command
