// The torch headers of this folder, precompiled once: one of them alone costs ten seconds.
// Every other header of worker/trainer that names a torch type includes this one.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/pimpl.h>
