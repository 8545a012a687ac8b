// What nearly every test includes beside cmake/precompiled.h, precompiled once for all test
// programs (those of torch: once more, with worker/trainer/torch_headers.h). A test names what it
// uses all the same.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
