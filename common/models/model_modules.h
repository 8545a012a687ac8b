// How Hugging Face's models name and join their modules: what differs between families that share
// their layers. Parameters (common/models/model_parameters), the trainer's models and their
// allocation traces all read it here. Source: transformers 5.23, models/*/modeling_*.py.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "common/models/activation.h"
#include "common/models/model_spec.h"

namespace hpo {

// The modules of one post-norm layer (BERT's and its descendants'), named from the layer.
struct EncoderLayerModules {
  const char* query;
  const char* key;
  const char* value;
  const char* attention_dense;
  const char* attention_norm;
  const char* intermediate;
  const char* output_dense;
  const char* output_norm;
  bool attention_dropout;  // hidden dropout after `attention_dense` too
};

// A sequence classifier from the last hidden states to the logits, named from the whole model.
struct ClassifierModules {
  bool last_token;            // of each row is classified; else the first
  const char* dense;          // a layer before the head's; nullptr: none
  bool dropout_before_dense;  // and always after it
  Activation activation;      // of `dense`
  const char* output;         // to the labels
  bool output_bias;
};

struct ModelModules {
  const char* prefix;  // the bare model's name in one with a head: "bert"
  const char* layers;  // the list of layers, in the bare model: "encoder.layer"
  ClassifierModules classifier;
};

const ModelModules& ModulesOf(ModelFamily family);

// Of an encoder; a decoder has none of these.
const EncoderLayerModules& EncoderLayerModulesOf(ModelFamily family);

// Of the classifier, where a trial does not choose it: that of hidden states, but none on the last
// token of a decoder.
double HeadDropoutOf(const ModelShape& shape);

// The library's class: "XLMRobertaForSequenceClassification" of "xlm-roberta" and
// "ForSequenceClassification". The family is a known one (ModelFamilyOf).
std::string ArchitectureName(absl::string_view model_type, absl::string_view task);

// The model_type of such a class: "bert" of "BertForMaskedLM". Empty: it is not known.
std::string ModelTypeOf(absl::string_view architecture);

}  // namespace hpo
