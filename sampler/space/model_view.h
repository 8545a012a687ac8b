// What a model of a space is for.
#pragma once

namespace hpo::sampler {

// Of two parameters whose product is the effective batch, quality depends on the product, and what
// fits into memory on both.
enum class ModelView { kQuality, kMemory };

}  // namespace hpo::sampler
