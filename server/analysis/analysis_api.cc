#include "server/analysis/analysis_api.h"
