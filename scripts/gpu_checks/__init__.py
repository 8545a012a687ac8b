"""What scripts/gpu_check and scripts/gpu_memory_suite are made of; standard library alone."""
