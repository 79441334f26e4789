"""The kit `gpuworkspace`: one developer's machine with a GPU, on AWS."""
